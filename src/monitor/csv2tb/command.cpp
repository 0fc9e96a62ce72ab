// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <vector>

#include "monitor/csv2tb/convert.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

class Csv2TbCommand final : public Command {
 public:
  std::string_view name() const override { return "monitor csv2tb"; }
  std::vector<std::string> other_names() const override {
    return {"csv2tensorboard_by_step", "monitor csv2tensorboard_by_step"};
  }
  std::string_view summary() const override { return "Show a training monitor's csv files in TensorBoard"; }

  void declare(OptionList& options) override {
    options.add("-d,--monitor_path=DIR", options_.input, "Folder with the rank folders, of either monitor")
        .required();
    options.add("-o,--output_dirpath=DIR", options_.output, "Folder for the event files")
        .details("A new one is named <TIME-csv2tensorboard_by_step>.")
        .default_text("a new one in the folder of -d");
    options.add("--time_start=TIME", options_.times.from, "Only folders from this time (Jan01_00-00-00) on");
    options.add("--time_end=TIME", options_.times.to, "Only folders up to this time")
        .details("The names have no years.");
    options
        .add("--data_type_list=LIST", options_.quantities,
             "Any of actv, grad_reduced, comm, ..., separated by commas")
        .details(
            "The quantities are `actv`, `actv_grad`, `exp_avg`, `exp_avg_sq`, `grad_unreduced`, "
            "`grad_reduced`, `param_origin`, `param_updated`, `mg_direction`, `comm` and others in the "
            "files; default: all.")
        .commas()
        .suggest({"actv", "actv_grad", "exp_avg", "exp_avg_sq", "grad_unreduced", "grad_reduced",
                  "param_origin", "param_updated", "mg_direction", "comm"});
    options
        .add("--process_num=NUMBER", processes_,
             "Accepted as by the Python tool; -j sets the number of threads")
        .in_range(1);
  }

  Outcome run(const Context& context) override {
    if (!options_.output.empty()) check_output_folder(options_.output);
    const EventReport report = convert_to_events(options_, context.progress);
    for (const std::string& warning : report.warnings) log_warning(warning);
    for (const std::string& problem : report.problems) log_error(problem);
    if (report.files == 0 && report.problems.empty())
      throw FormatError(display(options_.input), "has no values of a training monitor");
    log_info(fmt::format("{} value{} in {} event file{}\n  written: {}", human_count(report.scalars),
                         report.scalars == 1 ? "" : "s", human_count(report.files),
                         report.files == 1 ? "" : "s", display(report.output)));
    return report.problems.empty() ? Outcome::clean : Outcome::failure;
  }

 private:
  EventOptions options_;
  std::size_t processes_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_csv2tb() {
  return std::make_unique<Csv2TbCommand>();
}

}  // namespace msprobe::monitor
