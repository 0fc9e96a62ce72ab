// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>

#include "anomaly/analyze.hpp"
#include "anomaly/result.hpp"
#include "anomaly/summary.hpp"
#include "report/terminal.hpp"
#include "support/command.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

constexpr std::size_t kTextWidth = 200;  // width of lines in a file

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
    options
        .add("-i,--input_path=PATH", options_.input,
             "Folder of one step, or of a whole dump (its first bad step is analyzed)")
        .details(
            "The ranks are the folders <rank0>, <rank1> and so on of a step.\n"
            "The folder of one rank or its <dump.json> is accepted, too.")
        .required()
        .once();
    options.add("-o,--output_path=DIR", options_.output, "Folder for the result, or - for standard output")
        .details("It is created if there is a result.");
    options
        .add("--format", options_.format,
             {{"json", AnalysisFormat::json},
              {"jsonl", AnalysisFormat::jsonl},
              {"text", AnalysisFormat::text}},
             "Format of the result")
        .details(
            "`json` is the Python tool's document, `jsonl` one object per line, `text` the answer on the "
            "terminal.");
    Option all =
        options
            .add_flag("--all", options_.all, "Every independent origin, each with its path from rank to rank")
            .details(
                "Origins are in order of time; the path by which their values spread is in <kind> and "
                "<spread> of the result.\n"
                "An origin is left out if bad values from another one had already reached its rank.");
    Option levels =
        options
            .add_flag(
                "--levels", [this](int) { options_.listing = AnomalyListing::levels; },
                "Instead: list the entries with NaN or Inf as medium, high or critical")
            .details(
                "`critical`: clean inputs, bad output; `high`: bad inputs and output, or an output norm more "
                "than 100 times that of the inputs; `medium`: bad input, clean output.\n"
                "A mean or norm that is not finite counts only where the maximum and the minimum show that "
                "no sum left the range of its type, and values filled in by a mask are no jump of the norm.");
    Option statistics =
        options
            .add_flag(
                "--statistics", [this](int) { options_.listing = AnomalyListing::statistics; },
                "Instead: list outputs at the limit of their dtype, jumps of the norm, and the like")
            .details(
                "They are outputs at the largest finite number of their dtype whose inputs were below it "
                "(<saturated>), norms that jump (<norm_jump>), and means and norms that are not finite "
                "though maximum and minimum are, and are too small for a sum to leave the range of its type "
                "(<bad_mean>, <bad_norm>).");
    gate_.declare(options, "entries", {"anomaly", "never"})
        .details(
            "A non-empty list also counts. Inf that spreads no further, perhaps a mask, is reported but does "
            "not count.\n"
            "A rank without a Max or Min to judge by, as one without entries or with checksums, exits with "
            "2.");
    options.add_flag("--python-rules", python_rules_, "Has no effect").manual_only();
    options.add("--rules=FILE", options_.rules_file, "YAML file with lists in place of the built-in ones")
        .details(
            "It has lists of communication calls, of operations that are never blamed and of expected bad "
            "values, and the limits.");
    levels.excludes({statistics, all});
    statistics.excludes({all});
  }

  bool shares_work() const override { return true; }
  bool takes_local_input() const override { return true; }

  Outcome run(const Context& context) override {
    if (python_rules_) report_without_effect(name_, "--python-rules");
    AnalyzeOptions& options = options_;
    options.local = context.local;
    const AnomalyRules rules = options.rules_file.empty() ? default_rules() : load_rules(options.rules_file);
    if (team().is_root() && options.output != "-") check_output_folder(options.output);
    const Analysis analysis = analyze(options, rules, context.progress, show);
    if (!team().is_root()) return Outcome::clean;
    if (analysis.anomaly() || (options.listing != AnomalyListing::none && options.output == "-")) {
      write(analysis, options, rules, context.color);
    } else if (options.listing != AnomalyListing::none) {
      log_info(render_listing(analysis, options.listing, style(context.color)));
    } else {
      log_info("no origin of NaN or Inf found; no file is written");
    }
    const Outcome outcome = gate_.end(analysis.fault(), analysis.coverage, analysis.not_judged);
    return analysis.failed ? Outcome::failure : outcome;
  }

 private:
  static AnswerStyle style(bool color) { return {color, report::terminal_width(STDERR_FILENO)}; }

  static std::string render(const Analysis& analysis, const AnalyzeOptions& options,
                            const AnomalyRules& rules, const AnswerStyle& style) {
    return options.listing == AnomalyListing::none ? render_answer(analysis, rules, style)
                                                   : render_listing(analysis, options.listing, style);
  }

  static std::string document(const Analysis& analysis, const AnalyzeOptions& options,
                              const AnomalyRules& rules) {
    if (options.format == AnalysisFormat::text) return render(analysis, options, rules, {false, kTextWidth});
    const bool lines = options.format == AnalysisFormat::jsonl;
    if (options.listing != AnomalyListing::none)
      return lines ? findings_jsonl(analysis, options.listing) : findings_json(analysis, options.listing);
    return lines ? roots_jsonl(analysis) : roots_json(analysis);
  }

  static void write(const Analysis& analysis, const AnalyzeOptions& options, const AnomalyRules& rules,
                    bool color) {
    std::string text = document(analysis, options, rules);
    if (options.output == "-") {
      if (!text.ends_with('\n')) text += '\n';
      write_all(STDOUT_FILENO, text, "standard output");
    } else {
      create_directories(options.output);
      OutputFile file(options.output + "/" + file_name(options));
      file.write(text);
      file.commit();
      log_info("written: " + display(file.path()));
    }
    // The report already went to standard output; do not show it twice on one screen.
    if (options.output == "-" && options.format == AnalysisFormat::text) return;
    log_info(render(analysis, options, rules, style(color)));
  }

  static std::string file_name(const AnalyzeOptions& options) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const char* stem = options.listing == AnomalyListing::levels       ? "overflow_levels_"
                       : options.listing == AnomalyListing::statistics ? "overflow_statistics_"
                                                                       : "anomaly_analyze_";
    const char* ending = options.format == AnalysisFormat::json    ? ".json"
                         : options.format == AnalysisFormat::jsonl ? ".jsonl"
                                                                   : ".txt";
    return stem + std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) + ending;
  }

  std::string_view name_;
  std::string_view summary_;
  AnalyzeOptions options_;
  bool python_rules_ = false;
  Gate gate_;
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
