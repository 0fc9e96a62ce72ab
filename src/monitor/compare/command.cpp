// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <optional>

#include "monitor/compare/compare.hpp"
#include "monitor/compare/table.hpp"
#include "monitor/compare/words.hpp"
#include "report/format_option.hpp"
#include "report/terminal.hpp"
#include "report/writers.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

class CompareRunsCommand final : public Command {
 public:
  std::string_view name() const override { return "monitor compare"; }
  std::string_view summary() const override { return "Find where two monitored trainings part"; }

  void declare(OptionList& options) override {
    write_.existing = Existing::refuse;
    options.add_pair(options_.first, options_.second, "RUN", "the folders of two runs",
                     "Folders that the monitor wrote in two runs of a training");
    const Option output =
        options
            .add("-o,--output_path=FILE", output_,
                 "Table of all series (.csv, .xlsx, .json, .jsonl), or - for standard output")
            .details("The series that parts first is in the first row.");
    format_option_ = options.add("--format", format_, report::kFormats,
                                 "Format of the table, if the file name does not give it");
    format_option_.default_text("").needs(output);
    options.add_overwrite(write_.existing);
    options.add("--statistics=NAMES", options_.statistics, "Only these: norm, min, max, mean, ...").commas();
    options
        .add("--tolerance=TIMES", options_.tolerance,
             "How many times its own fluctuation a series may differ before it parts")
        .not_negative();
    gate_.declare(options, "cells", {"different", "passing", "parted", "never"})
        .details(
            "`different`: any number; `passing`: beyond its fluctuation, if only for some steps; `parted`: "
            "for good.\n"
            "Cells that only one run has (a rank, a tensor, a statistic or a step), and numbers that are "
            "NaN, "
            "infinite or empty in both runs, are not compared: the status is 2. A number of the same tensor "
            "and step "
            "that was compared counts for the others.");
  }

  Outcome run(const Context& context) override {
    const std::optional<report::Format> format = table_format();
    if (format && output_ != "-") prepare_output(output_, write_.existing);
    const MonitorComparison comparison = compare(options_, context.progress);
    for (const std::string& warning : comparison.warnings) log_warning(warning);
    for (const std::string& problem : comparison.problems) log_error(problem);
    if (comparison.compared() == 0) {
      throw FormatError(
          display(options_.first) + " and " + display(options_.second) + " have no series in common" +
          (comparison.coverage.asked() == 0 ? std::string() : ": " + comparison.coverage.text(gate_.unit())));
    }
    write(comparison, format, context.color);
    return outcome(comparison);
  }

 private:
  std::optional<report::Format> table_format() const {
    if (output_.empty()) return std::nullopt;
    if (format_option_.given()) return format_;
    if (output_ == "-") return report::Format::csv;
    const auto format = report::format_of_file(output_);
    if (!format)
      throw UsageError("'" + display(output_) +
                       "' does not end in .csv, .xlsx, .json or .jsonl: give --format");
    return format;
  }

  /// The answer is the result where no table is asked for.
  void write(const MonitorComparison& comparison, const std::optional<report::Format>& format,
             bool color) const {
    if (!format) {
      write_all(STDOUT_FILENO, monitor::summary(comparison, color && report::is_terminal(STDOUT_FILENO)),
                "standard output");
      return;
    }
    if (output_ == "-") {
      report::write_stdout(ComparisonTable(comparison), *format);
    } else {
      for (const std::string& file :
           report::write_file(ComparisonTable(comparison), *format, output_, write_))
        log_verbose("written: " + display(file));
    }
    std::string text = monitor::summary(comparison, color);
    text.pop_back();
    log_info(text);
  }

  Outcome outcome(const MonitorComparison& comparison) const {
    bool findings = comparison.parted > 0;
    if (gate_.level() != "parted") findings = findings || comparison.passing > 0;
    if (gate_.level() == "different") findings = findings || comparison.unequal > 0;
    const Outcome outcome = gate_.end(findings, comparison.coverage);
    return comparison.problems.empty() ? outcome : Outcome::failure;
  }

  MonitorCompareOptions options_;
  std::string output_;
  report::WriteOptions write_;
  Option format_option_;
  report::Format format_ = report::Format::csv;
  Gate gate_;
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<CompareRunsCommand>();
}

}  // namespace msprobe::monitor
