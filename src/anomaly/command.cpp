// SPDX-License-Identifier: Apache-2.0
#include "anomaly/command.hpp"

#include <unistd.h>

#include <chrono>

#include "anomaly/analyze.hpp"
#include "anomaly/result.hpp"
#include "anomaly/summary.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

constexpr std::size_t kTextWidth = 200;  // of lines in a file

/// What was typed.
struct Typed {
  std::string input;
  std::string output = "./output";
  std::string format = "json";
  std::string rules;
  std::string fail_on = "never";
  bool all = false;
  bool levels = false;
  bool statistics = false;
  bool python_rules = false;
};

AnalyzeOptions to_options(const Typed& typed) {
  if (typed.input.empty()) throw UsageError("-i/--input_path is required");
  AnalyzeOptions options;
  options.input = typed.input;
  options.output = typed.output.empty() ? "./output" : typed.output;
  options.format = typed.format == "json"    ? Format::json
                   : typed.format == "jsonl" ? Format::jsonl
                                             : Format::text;
  if (typed.python_rules) options.traits = python_traits();
  options.all = typed.all;
  options.rules_file = typed.rules;
  if (typed.levels && typed.statistics) throw UsageError("--levels and --statistics exclude each other");
  if (typed.levels) options.listing = Listing::levels;
  if (typed.statistics) options.listing = Listing::statistics;
  if (options.listing != Listing::none && (typed.all || typed.python_rules)) {
    throw UsageError(std::string(typed.levels ? "--levels" : "--statistics") +
                     " goes with neither --all nor --python-rules");
  }
  if (typed.all && typed.python_rules) throw UsageError("--all and --python-rules exclude each other");
  return options;
}

void show(Remark kind, const std::string& text) {
  if (kind == Remark::warning) log_warning(text);
  if (kind == Remark::progress) log_info(text);
  if (kind == Remark::detail) log_verbose(text);
}

class AnomalyCommand final : public Command {
 public:
  AnomalyCommand(std::string_view name, std::string_view summary) : name_(name), summary_(summary) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }

  void declare(OptionList& options) override {
    options.add("-i,--input_path", typed_.input, "Folder of one step, or of a whole dump: its first bad step")
        .argument("PATH");
    options.add("-o,--output_path", typed_.output, "Folder for the result, or - for standard output")
        .argument("DIR")
        .show_default();
    options.add("--format", typed_.format, "Form of the result: json, jsonl, text")
        .one_of({"json", "jsonl", "text"})
        .show_default();
    options.add_flag("--all", typed_.all, "Every independent origin, each with its path from rank to rank");
    options.add_flag("--levels", typed_.levels,
                     "Instead: list the entries with NaN or Inf as medium, high or critical");
    options.add_flag("--statistics", typed_.statistics,
                     "Instead: list outputs at the limit of their dtype, jumps of the norm, and the like");
    options.add("--fail-on", typed_.fail_on, "Exit with 1 if there is: anomaly, never")
        .one_of({"anomaly", "never"})
        .show_default();
    options.add_flag("--python-rules", typed_.python_rules,
                     "The answer of the Python tool 26.x, mistakes included");
    options.add("--rules", typed_.rules, "YAML file with lists in place of the built-in ones")
        .argument("FILE");
  }

  bool shares_work() const override { return true; }
  bool takes_local_input() const override { return true; }

  Outcome run(const Context& context) override {
    AnalyzeOptions options = to_options(typed_);
    options.local = context.local;
    if (context.local && typed_.python_rules)
      throw UsageError("--local and --python-rules exclude each other");
    const Rules rules = options.rules_file.empty() ? default_rules() : load_rules(options.rules_file);
    if (team().is_root() && options.output != "-") check_output_folder(options.output);
    const Analysis analysis = analyze(options, rules, context.progress, show);
    if (!team().is_root()) return Outcome::clean;
    if (analysis.anomaly() || (options.listing != Listing::none && options.output == "-")) {
      write(analysis, options, rules, context.color);
    } else if (options.listing != Listing::none) {
      log_info(render_listing(analysis, options.listing, style(context.color)));
    } else {
      log_info("Cannot find any anomaly node, no need to generate analyze file.");
    }
    if (analysis.failed) return Outcome::failure;
    return typed_.fail_on == "anomaly" && analysis.anomaly() ? Outcome::findings : Outcome::clean;
  }

 private:
  static AnswerStyle style(bool color) { return {color, report::terminal_width(STDERR_FILENO)}; }

  static std::string render(const Analysis& analysis, const AnalyzeOptions& options, const Rules& rules,
                            const AnswerStyle& style) {
    return options.listing == Listing::none ? render_answer(analysis, rules, style)
                                            : render_listing(analysis, options.listing, style);
  }

  static std::string document(const Analysis& analysis, const AnalyzeOptions& options, const Rules& rules) {
    if (options.format == Format::text) return render(analysis, options, rules, {false, kTextWidth});
    const bool lines = options.format == Format::jsonl;
    if (options.listing != Listing::none)
      return lines ? findings_jsonl(analysis, options.listing) : findings_json(analysis, options.listing);
    return lines ? roots_jsonl(analysis) : roots_json(analysis);
  }

  static void write(const Analysis& analysis, const AnalyzeOptions& options, const Rules& rules, bool color) {
    std::string text = document(analysis, options, rules);
    if (options.output == "-") {
      if (!text.ends_with('\n')) text += '\n';
      write_all(STDOUT_FILENO, text, "standard output");
    } else {
      create_directories(options.output);
      OutputFile file(options.output + "/" + file_name(options));
      file.write(text);
      file.commit();
      log_info("The analyze result is saved in: " + display(file.path()));
    }
    // The same text twice on one screen helps nobody.
    if (options.output == "-" && options.format == Format::text) return;
    log_info(render(analysis, options, rules, style(color)));
  }

  static std::string file_name(const AnalyzeOptions& options) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const char* stem = options.listing == Listing::levels       ? "overflow_levels_"
                       : options.listing == Listing::statistics ? "overflow_statistics_"
                                                                : "anomaly_analyze_";
    const char* ending = options.format == Format::json    ? ".json"
                         : options.format == Format::jsonl ? ".jsonl"
                                                           : ".txt";
    return stem + std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) + ending;
  }

  std::string_view name_;
  std::string_view summary_;
  Typed typed_;
};

}  // namespace

std::unique_ptr<Command> make_nan_analyze() {
  return std::make_unique<AnomalyCommand>("nan_analyze",
                                          "Find the operation and the rank where NaN or Inf began");
}

std::unique_ptr<Command> make_overflow_check() {
  return std::make_unique<AnomalyCommand>("overflow_check", "The same as nan_analyze, by its later name");
}

}  // namespace msprobe::anomaly
