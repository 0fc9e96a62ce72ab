// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "merge_result/merge.hpp"
#include "report/format_option.hpp"
#include "support/command.hpp"
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

  void declare(OptionList& options) override {
    options.add("-i,--input_dir=DIR", options_.input, "Folder with compare_result_rankN_TIME.csv or .xlsx")
        .details("At least two ranks are needed.")
        .required()
        .once();
    options.add("-o,--output_dir=DIR", options_.output, "Folder for the result")
        .details("It is created where missing.")
        .required();
    options
        .add("-config,--config-path=FILE", options_.config, "YAML file with the lists api and compare_index")
        .details(
            "<api> names operations: a row is included if its name begins with one of them and a dot, so "
            "that "
            "<Distributed.all_reduce> takes every call and <Distributed.all_reduce.0> the first.\n"
            "<compare_index> names columns; default: all metrics, columns of a user's own algorithms in "
            "tables of the Python tool, and `Requires_grad Consistent`.")
        .required();
    report::add_formats(options, options_.formats).details("The default is `xlsx`.");
  }

  bool shares_work() const override { return true; }

  Outcome run(const Context&) override {
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
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<MergeResultCommand>();
}

}  // namespace msprobe::merge_result
