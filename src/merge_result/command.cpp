// SPDX-License-Identifier: Apache-2.0
#include "merge_result/command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "merge_result/merge.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::merge_result {
namespace {

class MergeResultCommand final : public Command {
 public:
  std::string_view name() const override { return "merge_result"; }
  std::string_view summary() const override { return "Put the comparisons of many ranks side by side"; }

  std::vector<std::pair<std::string, std::string>> aliases() const override {
    return {{"-config", "--config-path"}};
  }

  void declare(OptionList& options) override {
    options.add("-i,--input_dir", options_.input, "Folder with compare_result_rankN_TIME.csv or .xlsx")
        .argument("DIR");
    options.add("-o,--output_dir", options_.output, "Folder for the result").argument("DIR");
    options.add("--config-path", options_.config, "YAML file with the lists api and compare_index")
        .argument("FILE");
    options.add("--format", formats_, "Any of xlsx, csv, json, jsonl, separated by commas")
        .commas()
        .suggest({"xlsx", "csv", "json", "jsonl"})
        .argument("LIST");
  }

  bool shares_work() const override { return true; }

  Outcome run(const Context&) override {
    if (options_.input.empty()) throw UsageError("-i/--input_dir is required");
    if (options_.output.empty()) throw UsageError("-o/--output_dir is required");
    if (options_.config.empty()) throw UsageError("-config/--config-path is required");
    if (!formats_.empty()) options_.formats.clear();
    for (const std::string& name : formats_) {
      const auto format = report::format_from_name(name);
      if (!format) throw UsageError("--format: '" + display(name) + "' is none of xlsx, csv, json, jsonl");
      if (std::find(options_.formats.begin(), options_.formats.end(), *format) == options_.formats.end())
        options_.formats.push_back(*format);
    }
    const MergeReport report = merge(options_);
    if (!team().is_root()) return Outcome::clean;
    for (const std::string& warning : report.warnings) log_warning(warning);
    std::string text =
        fmt::format("{} ranks, {} rows, {} {}", human_count(report.ranks.size()), human_count(report.rows),
                    report.indices.size(), report.indices.size() == 1 ? "index" : "indices");
    for (const std::string& file : report.files) text += "\n  written: " + display(file);
    log_info(text);
    return report.any_unreadable ? Outcome::failure : Outcome::clean;
  }

 private:
  MergeOptions options_;
  std::vector<std::string> formats_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<MergeResultCommand>();
}

}  // namespace msprobe::merge_result
