// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <vector>

#include "monitor/trend/trend.hpp"
#include "support/ascii.hpp"
#include "support/command.hpp"
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
    return name_ == kMonitorsAlone ? "Write a training monitor's csv files as a trend database"
                                   : "Write dumps or a monitor's csv files as a trend database";
  }

  void declare(OptionList& options) override {
    options.add("--data=DIR", options_.input, "Folder of a monitor (with ranks) or of a dump (with steps)")
        .details("A dump contains <step0/rank0> or <step0/proc123>.")
        .required();
    options.add("--db=DIR", options_.output, "Folder for the database").required();
    if (name_ != kMonitorsAlone)
      options.add("--format", format_, "What --data holds")
          .one_of({"auto", "dump", "monitor"})
          .details("`auto` accepts either or both.");
    options.add("--mapping=FILE", mapping_, "JSON file: an object of name parts and their replacements")
        .details("Each is replaced in every name, one after the other.");
    options
        .add(
            "--micro_step=BOOL",
            [this](const std::string& value) { options_.micro_steps = lower_case(value) == "true"; },
            "Count micro steps as steps: true, false")
        .details(
            "With `true` a step begins after all micro steps of the steps before it.\n"
            "With `false` steps keep their numbers, and each micro batch is a separate target.")
        .check([](const std::string& value) {
          const bool known = lower_case(value) == "true" || lower_case(value) == "false";
          return known ? std::string() : "'" + display(value) + "' is neither true nor false";
        })
        .default_text("true");
    options
        .add("--process_num=NUMBER", processes_,
             "Accepted as by the Python tool; -j sets the number of threads")
        .details("1 to 128 are accepted.")
        .in_range(1, 128);
    options.add_flag("--python-rules", python_rules_, "Has no effect").manual_only();
  }

  Outcome run(const Context& context) override {
    if (python_rules_) report_without_effect(name(), "--python-rules");
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
                            ? "has no rows of a training monitor"
                            : "has neither rows of a training monitor nor a dump (step0/rank0)");
    return failed ? Outcome::failure : Outcome::clean;
  }

 private:
  std::string_view name_;
  TrendOptions options_;
  std::string format_ = "auto";
  std::string mapping_;
  bool python_rules_ = false;
  std::size_t processes_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_trend(std::string_view name) {
  return std::make_unique<TrendCommand>(name);
}

}  // namespace msprobe::monitor
