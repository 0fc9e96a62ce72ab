// SPDX-License-Identifier: Apache-2.0
#include "monitor/trend/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "monitor/trend/trend.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::string_view kMonitorsAlone = "monitor csv2db";

class TrendCommand final : public Command {
 public:
  explicit TrendCommand(std::string_view name) : name_(name) {
    if (name_ == kMonitorsAlone) format_ = "monitor";
  }

  std::string_view name() const override { return name_; }
  std::vector<std::string> other_names() const override {
    return name_ == kMonitorsAlone ? std::vector<std::string>{} : std::vector<std::string>{"monitor data2db"};
  }
  std::string_view summary() const override {
    return name_ == kMonitorsAlone ? "Write a training monitor's csv files as a data base of trends"
                                   : "Write dumps or a monitor's csv files as a data base of trends";
  }

  void declare(OptionList& options) override {
    options.add("--data", options_.input, "Folder of a monitor (ranks) or of a dump (steps)").argument("DIR");
    options.add("--db", options_.output, "Folder for the data base").argument("DIR");
    if (name_ != kMonitorsAlone)
      options.add("--format", format_, "What --data holds: auto, dump, monitor")
          .one_of({"auto", "dump", "monitor"})
          .show_default();
    options.add("--mapping", mapping_, "JSON file: an object of parts of names and what takes their place")
        .argument("FILE");
    options.add("--micro_step", micro_step_, "Count micro steps as steps: true, false")
        .argument("BOOL")
        .show_default();
    options.add("--process_num", processes_, "As in the Python tool; -j says how many threads there are")
        .argument("NUMBER")
        .show_default();
    options.add_flag("--python-rules", options_.python_rules,
                     "Rows and micro steps as the Python tool 26.x has them");
  }

  Outcome run(const Context& context) override {
    constexpr std::size_t kMostProcesses = 128;
    if (options_.input.empty()) throw UsageError("--data is required");
    if (options_.output.empty()) throw UsageError("--db is required");
    if (processes_ == 0 || processes_ > kMostProcesses)
      throw UsageError(fmt::format("--process_num: 1 to {} is possible", kMostProcesses));
    options_.micro_steps = boolean(micro_step_);
    if (!mapping_.empty()) options_.mapping = read_name_mapping(mapping_);
    check_output_folder(options_.output);
    bool any = false;
    bool failed = false;
    const auto tell = [&](const TrendReport& report) {
      for (const std::string& warning : report.warnings) log_warning(warning);
      for (const std::string& problem : report.problems) log_error(problem);
      failed |= !report.problems.empty();
      if (report.file.empty()) return;
      any = true;
      log_info(fmt::format("{} row{}\n  written: {}", human_count(report.rows), report.rows == 1 ? "" : "s",
                           display(report.file)));
    };
    if (format_ != "monitor") tell(trend_of_dump(options_, context.progress));
    if (format_ != "dump") tell(trend_of_monitor(options_, context.progress));
    if (!any && !failed)
      throw FormatError(display(options_.input),
                        format_ == "dump" ? "holds no step0/rank0/dump.json"
                        : format_ == "monitor"
                            ? "holds no rows of a training monitor"
                            : "holds neither rows of a training monitor nor a dump (step0/rank0)");
    return failed ? Outcome::failure : Outcome::clean;
  }

 private:
  static bool boolean(const std::string& typed) {
    const std::string text = lower_case(typed);
    if (text != "true" && text != "false")
      throw UsageError("--micro_step: '" + display(text) + "' is neither true nor false");
    return text == "true";
  }

  std::string_view name_;
  TrendOptions options_;
  std::string format_ = "auto";
  std::string mapping_;
  std::string micro_step_ = "true";
  std::size_t processes_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_trend(std::string_view name) {
  return std::make_unique<TrendCommand>(name);
}

}  // namespace msprobe::monitor
