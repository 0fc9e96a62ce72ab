// SPDX-License-Identifier: Apache-2.0
#include "monitor/compare/command.hpp"

#include <unistd.h>

#include <optional>

#include "monitor/compare/compare.hpp"
#include "monitor/compare/table.hpp"
#include "monitor/compare/words.hpp"
#include "report/terminal.hpp"
#include "report/writers.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

std::string ending_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos || path.find('/', dot) != std::string::npos ? "" : path.substr(dot + 1);
}

class CompareRunsCommand final : public Command {
 public:
  std::string_view name() const override { return "monitor compare"; }
  std::string_view summary() const override { return "Find where two monitored trainings part"; }

  void declare(OptionList& options) override {
    options.add("run1", options_.first, "Folders that the monitor wrote in two runs of a training")
        .argument("RUN1");
    options.add("run2", options_.second, "The second one").argument("RUN2");
    options
        .add("-o,--output_path", output_,
             "Table of all series (.csv, .xlsx, .json, .jsonl), or - for standard output")
        .argument("FILE");
    options
        .add("--format", format_,
             "Form of the table, if the file's name does not tell: csv, xlsx, json, jsonl")
        .one_of({"csv", "xlsx", "json", "jsonl"});
    options.add("--statistics", options_.statistics, "Only these: norm, min, max, mean, ...")
        .argument("NAME")
        .commas();
    options
        .add("--tolerance", options_.tolerance,
             "How many times its own fluctuation a series may differ before it parts")
        .not_negative()
        .show_default();
    options.add("--fail-on", fail_on_, "Exit with 1 if there is: different, passing, parted, never")
        .one_of({"different", "passing", "parted", "never"})
        .show_default();
  }

  Outcome run(const Context& context) override {
    if (options_.second.empty()) {
      throw UsageError(options_.first.empty()
                           ? "the folders of two runs are needed"
                           : "'" + display(options_.first) + "' alone: two runs are needed");
    }
    const std::optional<report::Format> format = table_format();
    if (format && output_ != "-") prepare_output(output_);
    const Comparison comparison = compare(options_, context.progress);
    for (const std::string& warning : comparison.warnings) log_warning(warning);
    for (const std::string& problem : comparison.problems) log_error(problem);
    if (comparison.parted + comparison.passing + comparison.unequal + comparison.identical == 0) {
      throw FormatError(display(options_.first) + " and " + display(options_.second) +
                        " have no series in common");
    }
    write(comparison, format, context.color);
    return outcome(comparison);
  }

 private:
  std::optional<report::Format> table_format() const {
    if (output_.empty()) {
      if (!format_.empty()) throw UsageError("--format needs -o/--output_path");
      return std::nullopt;
    }
    if (!format_.empty()) return report::format_from_name(format_);
    if (output_ == "-") return report::Format::csv;
    const auto format = report::format_from_name(ending_of(output_));
    if (!format)
      throw UsageError("'" + display(output_) +
                       "' does not end in .csv, .xlsx, .json or .jsonl: give --format");
    return format;
  }

  /// The answer is the result where no table is asked for.
  void write(const Comparison& comparison, const std::optional<report::Format>& format, bool color) const {
    if (!format) {
      write_all(STDOUT_FILENO, monitor::summary(comparison, color && report::is_terminal(STDOUT_FILENO)),
                "standard output");
      return;
    }
    if (output_ == "-") {
      report::write_stdout(ComparisonTable(comparison), *format);
    } else {
      for (const std::string& file : report::write_file(ComparisonTable(comparison), *format, output_))
        log_verbose("written: " + display(file));
    }
    std::string text = monitor::summary(comparison, color);
    text.pop_back();
    log_info(text);
  }

  Outcome outcome(const Comparison& comparison) const {
    if (!comparison.problems.empty()) return Outcome::failure;
    if (fail_on_ == "never") return Outcome::clean;
    bool findings = comparison.parted > 0 || comparison.any_not_compared();
    if (fail_on_ != "parted") findings = findings || comparison.passing > 0;
    if (fail_on_ == "different") findings = findings || comparison.unequal > 0;
    return findings ? Outcome::findings : Outcome::clean;
  }

  CompareOptions options_;
  std::string output_;
  std::string format_;
  std::string fail_on_ = "never";
};

}  // namespace

std::unique_ptr<Command> make_compare() {
  return std::make_unique<CompareRunsCommand>();
}

}  // namespace msprobe::monitor
