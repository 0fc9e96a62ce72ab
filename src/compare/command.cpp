// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/first_difference.hpp"
#include "compare/option_groups.hpp"
#include "compare/series.hpp"
#include "compare/sinks/judgement.hpp"
#include "compare/sinks/summary_text.hpp"
#include "compare/sinks/texts.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/operations.hpp"
#include "pairing/request.hpp"
#include "report/terminal.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

/// The arguments as they were typed: the options, and what becomes of others.
struct Typed {
  CompareOptions options;
  std::string request;                           // compare.json of 8.1.1
  std::pair<std::string, std::string> operands;  // in place of it, -tp and -gp
  std::vector<Option> named;                     // the options of these three
  std::vector<std::string> against;              // golden, and the runs to compare with it
  Option output_option;
  std::string mode = "auto";
  std::string operations;
  std::vector<std::string> formats;
  Gate gate;
  bool xlsx = false;
  bool stack_mode = false;
  bool compare_only = false;
  bool strict = false;
  bool python_rules = false;
  std::string explain;
  PairingArguments pairing;
  std::vector<std::string> without;
  LayoutArguments layouts;
};

/// Reads compare.json of the 8.1.1 command line.
void read_request(const std::string& path, bool stack_mode, CompareOptions& options) {
  const pairing::RequestFile request(path);
  read_layout_keys(request.json(), path, options);
  options.inputs.target = request.text("npu_path", true);
  options.inputs.golden = request.text("bench_path", true);
  options.rank.stack_json = request.text("stack_path", false);
  // A named stack file shows only with -s; one beside the dump always shows.
  if (!options.rank.stack_json.empty() && !stack_mode) options.rank.stacks = false;
  options.rank.print_rows = request.flag("is_print_compare_log", true);
}

bool is_text(std::string_view name) {
  return text_format(name) != nullptr;
}

bool wants(const Typed& typed, std::string_view format) {
  return std::find(typed.formats.begin(), typed.formats.end(), format) != typed.formats.end();
}

std::vector<report::Format> chosen_formats(const Typed& typed) {
  std::vector<report::Format> formats;
  for (const std::string& name : typed.formats) {
    if (is_text(name)) continue;
    const report::Format format = report::format_from_name(name).value();
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
  }
  if (typed.xlsx && formats.empty()) formats.push_back(report::Format::xlsx);
  if (formats.empty() && std::ranges::none_of(typed.formats, is_text))
    formats.push_back(typed.request.empty() ? report::Format::csv : report::Format::xlsx);
  return formats;
}

/// The format that the file's ending names, if any.
std::vector<std::string> format_of_file(std::string_view name) {
  for (const TextFormat& format : text_formats()) {
    if (name.ends_with("." + std::string(format.ending))) return {std::string(format.name)};
  }
  const std::string_view ending = name.substr(name.rfind('.') + 1);
  if (ending.size() == name.size() || !report::format_from_name(ending)) return {};
  return {std::string(ending)};
}

/// The entry in a headline of the answer, which may be pasted whole: `blocks.2 > Tensor.add.1.forward, step
/// 0`.
std::string entry_in(std::string_view typed) {
  constexpr std::string_view kBehindModule = " > ";
  if (const std::size_t at = typed.rfind(kBehindModule); at != std::string_view::npos)
    typed.remove_prefix(at + kBehindModule.size());
  return std::string(typed.substr(0, typed.find(", ")));
}

Outputs to_outputs(Typed typed) {
  Outputs outputs = typed.options.outputs;
  if (typed.formats.empty() && !typed.xlsx) typed.formats = format_of_file(outputs.file);
  outputs.formats = chosen_formats(typed);
  outputs.formats_chosen = typed.xlsx || !typed.formats.empty();
  for (const TextFormat& format : text_formats()) {
    if (wants(typed, format.name)) outputs.texts.emplace_back(format.name);
  }
  outputs.story.entry = entry_in(typed.explain);
  if (outputs.directory == "-") {
    if (!outputs.file.empty()) throw UsageError("-o - and --output-file cannot be combined");
    outputs.file = "-";
  }
  // A file name without a folder goes into the folder given with -o.
  if (typed.output_option.given() && !outputs.file.empty() && outputs.file != "-" &&
      outputs.file.find('/') == std::string::npos) {
    outputs.file = outputs.directory + "/" + outputs.file;
  }
  if (!outputs.file.empty() && outputs.results() > 1) {
    throw UsageError("one output file can have only one --format");
  }
  return outputs;
}

/// Takes the two dumps from the operands.
void read_operands(const Typed& typed, Inputs& inputs) {
  const auto& [target, golden] = typed.operands;
  if (std::ranges::any_of(typed.named, &Option::given))
    throw UsageError("'" + display(target) + "' is one dump too many: options name the dumps already");
  if (golden.empty())
    throw UsageError("'" + display(target) + "' alone: two dumps are needed",
                     "msprobe compare TARGET GOLDEN, or -tp TARGET -gp GOLDEN");
  inputs.target = target;
  inputs.golden = golden;
}

CompareOptions to_options(const Typed& typed) {
  CompareOptions options = typed.options;
  options.inputs.atb = is_atb(typed.mode);
  if (!typed.against.empty()) {
    options.inputs.golden = typed.against.front();
  } else if (!typed.operands.first.empty()) {
    read_operands(typed, options.inputs);
  } else if (!typed.request.empty()) {
    read_request(typed.request, typed.stack_mode, options);
  }
  if (typed.python_rules && !options.rank.first_difference) {
    options.python_rules = true;
    options.python = measuring::python_rules();
    options.rank.diagnosis.wanted = false;
  }
  for (const std::string& letter : typed.without) {
    options.rank.diagnosis.without.insert(static_cast<diagnosis::Rule>(diagnosis::kRuleLetters.find(letter)));
  }
  if (typed.python_rules && typed.gate.level() == "culprit")
    throw UsageError(
        "--python-rules and --fail-on culprit cannot be combined: --python-rules does not look for a "
        "culprit");
  if (!typed.operations.empty()) dump::add_operations(typed.operations);
  options.rank.match = to_match_options(typed.pairing);
  options.rank.match.by_name = options.python_rules;
  apply_layouts(typed.layouts, options);
  options.outputs = to_outputs(typed);
  return options;
}

class CompareCommand final : public Command {
 public:
  std::string_view name() const override { return "compare"; }
  std::string_view summary() const override { return "Compare two dumps and find where they first diverge"; }

  void declare(OptionList& options) override {
    declare_inputs(options);
    declare_outputs(options);
    declare_diagnosis(options);
    declare_pairing(options, typed_.pairing, typed_.options.outputs);
    declare_layouts(options, typed_.layouts);
    declare_rules();
    // The options that most people need come before these.
    options.arrange(
        {{"Input", {"-i", "-m", "--config", "--rank", "--step", "-s"}},
         {"Pairing",
          {"-fm", "-am", "-cm", "-dm", "-lm", "--suggest-mapping", "--map-parameters", "--tp",
           "--consistent_check", "--backend"}},
         {"Judging", {"--rules", "--operations", "--python-rules", "--replay", "--first", "-da", "--strict"}},
         {"Results", {"--xlsx", "-tensor_log", "--top", "--by"}}});
  }

  bool shares_work() const override { return true; }
  bool takes_local_input() const override { return true; }

  Outcome run(const Context& context) override {
    typed_.options.summary.details |= top_.given() || by_.given();
    CompareOptions options = to_options(typed_);
    options.inputs.local = context.local;
    if (context.local && !options.rank.diagnosis.noise_floor.empty())
      throw UsageError("--local and --noise-floor cannot be combined");
    options.outputs.story.width = report::terminal_width(STDOUT_FILENO);
    options.outputs.story.color = context.output_color;
    if (!typed_.against.empty()) return run_series(options, context);
    if (const std::optional<Outcome> outcome = diff_analyze(options, context)) return *outcome;
    const CompareReport report = compare::compare(options, context.progress);
    if (!team().is_root()) return Outcome::clean;
    warn_of_idle_options(report, context);
    for (const TaskSummary& task : report.tasks) {
      if (!task.failure.empty())
        log_error((task.label.empty() ? "" : display(task.label) + ": ") + task.failure);
    }
    if (!typed_.explain.empty()) {
      write_all(STDOUT_FILENO, report.story, "standard output");
    } else {
      print_summary(report, options, context);
    }
    const std::string& level = typed_.gate.level();
    const Outcome outcome = typed_.gate.end(found_something(report, level), coverage_of(report, level),
                                            not_judged(report, level));
    return is_failed(report, typed_.strict) ? Outcome::failure : outcome;
  }

 private:
  void declare_inputs(OptionList& options) {
    Option target = options.add("-tp,--target_path=PATH", typed_.options.inputs.target,
                                "Dump under test: dump.json, rank, step or dump folder");
    Option golden =
        options.add("-gp,--golden_path=PATH", typed_.options.inputs.golden, "Golden dump, of the same kind");
    const Option request =
        options
            .add("-i,--input_path=FILE", typed_.request,
                 "JSON file with npu_path and bench_path (as in 8.1.1)")
            .excludes({target, golden}, "-i names both paths")
            .details(
                "Optional keys are `stack_path`, `is_print_compare_log`, `rank_id` and `step_id`.\n"
                "The result is then a workbook, unless --format is given.");
    typed_.named = {target, golden, request};
    const Option operand = options.add("target=TARGET", typed_.operands.first,
                                       "The dump under test and the golden one, as -tp and -gp name them");
    options.add("golden=GOLDEN", typed_.operands.second, "The golden dump");
    against_ = options.add("--against=PATH", typed_.against,
                           "Golden dump, then the runs to compare with it: gives a table of their culprits");
    against_.any_number_of_values(1).details(
        "The results of each run go to a separate folder inside that of -o.\n"
        "`-o -` and --output-file give the table instead (csv, xlsx, json, jsonl or md).\n"
        "The exit status is the worst of all runs; one that fails does not stop the others.");
    target.required({request, operand, against_}).once();
    golden.required({request, operand, against_}).once();
    against_.excludes({target, golden, request, operand}, "it names all dumps");
    Option(request).once();
    options.add("-m,--mode", typed_.mode, "Kind of the dumps: auto, atb")
        .suggest({"auto", "atb"})
        .details(
            "`atb` compares folders with the <statistic.csv> of an ATB dump, and its tensors if they were "
            "dumped, and writes a workbook <atb_stats_compare_result_*.xlsx> or "
            "<atb_tensor_compare_result_*.xlsx>.\n"
            "A different dtype or shape, a statistic that is off by more than 50%, or a cosine below 0.9 "
            "makes a row an error; a tensor that cannot be read, a warning.\n"
            "The modes torchair, offline_data and offline_model of the Python tool need the vendor's toolkit "
            "and are not supported.");
    options
        .add("--rules=FILE", typed_.options.rules_file,
             "YAML file with thresholds that replace the built-in ones")
        .details("It also has the lists of special operators.");
    config_ = options
                  .add("--config=FILE", typed_.options.factors_file,
                       "YAML file of matrices to multiply tensors by before comparing them")
                  .details("See TENSOR FACTORS.");
    options
        .add("--operations=FILE", typed_.operations,
             "YAML file with rows of your own operations, which msprobe does not know")
        .details(
            "The diagnosis reads them in addition to the built-in ones, and instead of those with the same "
            "name.\n"
            "A row says what an operation computes, how it propagates errors, and which arguments it has.\n"
            "An example is `my_norm: {kind: norm, signature: \"input weight eps=1e-06\", parameters: "
            "[weight]}`.");
    python_rules_ =
        options
            .add_flag("--python-rules", typed_.python_rules,
                      "Give the verdicts, messages and numbers of the Python tool 26.x")
            .details("They count even where msprobe intentionally differs. With -da it has no effect.");
    options
        .add_flag("-c,--compare_only", typed_.compare_only,
                  "Accepted for compatibility with 8.1.1; has no effect")
        .details("In 8.1.1 it suppressed the advice at the end.")
        .manual_only();
  }

  void declare_outputs(OptionList& options) {
    typed_.output_option = options
                               .add("-o,--output_path[=DIR]", typed_.options.outputs.directory,
                                    "Folder for the results, or - for standard output")
                               .details("It is created where missing.");
    options
        .add("--output-file=FILE", typed_.options.outputs.file,
             "Write one result file of this name (in the folder of -o) or path, or - for standard output; "
             "without --format its extension selects the format")
        .details(
            "A bare name is placed in the folder of -o, or without -o in the current folder; anything else "
            "is a path.\n"
            "Missing folders are created; an existing file is replaced only with --overwrite, and the "
            "summary says so.");
    options.add_overwrite(typed_.options.outputs.existing)
        .details("That is, files that --output-file, --suggest-mapping and --map-parameters name.");
    formats_ = options
                   .add("--format=LIST", typed_.formats,
                        "Result formats, separated by commas: csv, xlsx, json, jsonl, html, md, junit, "
                        "sarif, github")
                   .commas()
                   .one_of({"csv", "xlsx", "json", "jsonl", "html", "md", "junit", "sarif", "github"})
                   .details(
                       "The default is `csv`.\n"
                       "`json` is one document, `jsonl` one object per line, `html` the report: one page for "
                       "all ranks and steps, with an error curve and a graph of the model; `md` is the "
                       "verdict as Markdown, for a comment on a pull request.\n"
                       "`junit` (XML, for build servers), `sarif` (SARIF 2.1.0, for code scanning) and "
                       "`github` (annotations of GitHub Actions) report the answer to the program that runs "
                       "the comparison.");
    options.add_flag("--xlsx", typed_.xlsx, "The same as --format xlsx");
    stack_mode_ = options.add_flag("-s,--stack_mode", typed_.stack_mode,
                                   "With -i: show the call stacks of its stack_path");
    options.add_flag("-tensor_log,--is_print_compare_log", typed_.options.rank.print_rows,
                     "Log one line for each pair of tensors");
    typed_.gate.declare(options, diagnosis::kTensors, {"culprit", "error", "warning", "unmatched", "never"})
        .details(
            "`culprit`: there is evidence of where the runs diverge; differences by rounding do not count.\n"
            "`error`: a row has the Result `error`. The limits judge an output only where its inputs agree: "
            "in "
            "continuous integration take `culprit`.\n"
            "`warning` adds warnings; `unmatched` adds to `error` the entries, ranks and steps that only one "
            "side "
            "has.\n"
            "If --first left anything out, each of them exits with 1.\n"
            "Where nothing is found, the status is 0 only if all tensors were compared. A tensor without a "
            "number "
            "or checksum on both sides, one that could not be read, a rank or step on one side only, and a "
            "mapping "
            "file that names nothing in the dumps exit with 2.");
    strict_ = options.add_flag("--strict", typed_.strict,
                               "Exit with 2 if any pair of tensors or ranks could not be compared");
    options
        .add_flag("--details", typed_.options.summary.details,
                  "Show each step and rank by itself, with its worst rows")
        .details("The same with -v, --top and --by.");
    top_ = options.add("--top=N", typed_.options.summary.top, "Number of worst rows that are shown");
    by_ = options
              .add("--by=METRIC", typed_.options.summary.by,
                   "Sort the worst rows by this metric, named as its column")
              .suggest(RankRows::all_metrics())
              .details(
                  "The Result of the rows does not count then.\n"
                  "Examples are `MaxAbsErr` and `Mean diff`.");
    explain_ =
        options
            .add("--explain=ENTRY", typed_.explain,
                 "Print everything known about this entry or row instead of writing results")
            .details(
                "That is the evidence, both sides, differences and metrics, messages, the entry that "
                "produced each input with the error there, the call stack with the frames of installed "
                "packages last, and the entries before and after, for every rank that has it.\n"
                "Examples are `Functional.linear.3.forward` for an entry, "
                "`Functional.linear.3.forward.output.0` for a row and `decoder.layers.1` for the first call "
                "of "
                "a module. A headline of the answer names its entry.");
  }

  void declare_diagnosis(OptionList& options) {
    replay_ = options
                  .add("--replay", typed_.options.rank.diagnosis.replay,
                       {{"suspects", diagnosis::ReplayMode::suspects},
                        {"all", diagnosis::ReplayMode::all},
                        {"never", diagnosis::ReplayMode::never}},
                       "With tensors: operations to recompute in float64, to see which side is wrong")
                  .details(
                      "They are recomputed from each side's own inputs.\n"
                      "`suspects` are those whose error does not follow from their inputs.");
    noise_floor_ =
        options
            .add("--noise-floor=PATH", typed_.options.rank.diagnosis.noise_floor,
                 "Third dump, from the golden code on other kernels, or golden's free_benchmark results: its "
                 "differences count as rounding")
            .details(
                "Other kernels are another vector width, library or number of threads; the difference from "
                "golden in a tensor counts as rounding of that tensor.\n"
                "The results of the collector's task `free_benchmark` are a <free_benchmark.csv>, or the "
                "folder of its steps: outputs that are unstable there may have errors of that size.");
    first_ = options
                 .add_flag("--first", typed_.options.rank.diagnosis.first,
                           "Stop at the first certain evidence and do not compare what follows")
                 .details(
                     "Entries after it in the order of execution are not compared, and their tensors and the "
                     "later steps of the rank are not read.\n"
                     "Such rows have the Result `warning` with the reason and the Origin `not compared`, and "
                     "are counted as left out.");
    options
        .add("--without-evidence=LIST", typed_.without,
             "Diagnosis rules to leave out, for experiments: a structure, b source, c replay, d introduced, "
             "e gain")
        .commas()
        .one_of({"a", "b", "c", "d", "e"})
        .manual_only();
    diff_analyze_ =
        options
            .add_flag("-da,--diff_analyze", typed_.options.rank.first_difference,
                      "Search all ranks of a step for the entries where the runs first diverge; writes JSON")
            .details("It follows values through communication; see FIRST DIFFERENCE.");
  }

  void declare_rules() {
    against_.excludes(
        {explain_, diff_analyze_, typed_.pairing.suggest_option, typed_.pairing.map_parameters_option},
        "each is about two dumps");
    python_rules_.excludes({noise_floor_, first_}, "--python-rules does not look for a culprit");
    first_.excludes({strict_}, "--first leaves rows out");
    strict_.excludes({typed_.gate.allowance()});
    first_.excludes({typed_.layouts.consistent_option}, "--consistent_check does not look for evidence")
        .excludes({diff_analyze_}, "-da does not look for evidence");
    diff_analyze_.excludes({formats_}, "-da writes JSON")
        .excludes({typed_.layouts.consistent_option, explain_, typed_.pairing.suggest_option,
                   typed_.pairing.map_parameters_option})
        .excludes({config_}, "-da compares statistics, not tensors");
  }

  Outcome run_series(CompareOptions& options, const Context& context) const {
    if (context.local) throw UsageError("--local and --against cannot be combined");
    if (team().processes() > 1)
      throw UsageError("--against compares in one process, not in those of msprobe-mpi");
    if (options.summary.details)
      throw UsageError("--against shows a line for each run: leave out --details, --top and --by");
    if (typed_.against.size() < 2) throw UsageError("--against needs a run to compare with golden");
    check_series_format(options.outputs);
    const std::vector<std::string> runs(typed_.against.begin() + 1, typed_.against.end());
    const std::vector<SeriesRun> series =
        compare_series(runs, options, typed_.gate, typed_.strict, context.progress);
    Outcome worst = Outcome::clean;
    for (std::size_t i = 0; i < series.size(); ++i) {
      worst = std::max(worst, series[i].outcome);
      for (const std::string& failure : series[i].failures)
        log_error("run " + std::to_string(i + 1) + ": " + failure);
      if (series[i].not_judged.empty()) continue;
      (series[i].outcome == Outcome::clean ? log_warning : log_error)(
          "not judged: run " + std::to_string(i + 1) + ": " + series[i].not_judged);
    }
    const Outputs& outputs = options.outputs;
    if (!outputs.file.empty()) write_series(series, outputs);
    if (log_level() != LogLevel::quiet && outputs.file != "-") {
      const Screen screen{report::terminal_width(STDOUT_FILENO), context.output_color};
      write_all(STDOUT_FILENO, render_series(series, outputs, screen), "standard output");
    }
    return worst;
  }

  /// Runs -da; returns nothing if it was not asked for.
  std::optional<Outcome> diff_analyze(const CompareOptions& options, const Context& context) const {
    if (!options.rank.first_difference) return std::nullopt;
    if (!options.outputs.file.empty()) throw UsageError("-da writes several files: pass a folder with -o");
    if (is_single_pair(options)) {
      throw UsageError("-da searches the ranks of a step; it needs folders with ranks, not single dumps");
    }
    if (typed_.python_rules) report_without_effect(name(), "--python-rules", " with -da");
    const DifferenceReport report = find_first_difference(options, context.progress);
    if (!team().is_root()) return Outcome::clean;
    log_info(render_differences(report, context.color));
    bool failed = typed_.strict && !report.one_sided.empty();
    bool findings = false;
    for (const AnalyzedStep& step : report.steps) {
      findings = findings || !step.first.places.empty();
      for (const AnalyzedRank& rank : step.ranks) failed = failed || !rank.failure.empty();
    }
    const Outcome outcome = typed_.gate.end(findings, coverage_of(report), not_judged(report));
    return failed ? Outcome::failure : outcome;
  }

  /// Warns about options that have no effect here.
  void warn_of_idle_options(const CompareReport& report, const Context& context) const {
    if (stack_mode_.given() && typed_.request.empty())
      log_warning("-s has no effect without -i: the stacks beside a dump are always shown");
    if (context.local && team().processes() == 1)
      log_warning("--local has no effect on one process; msprobe-mpi starts several");
    if (replay_.given() && report.diagnosis && !report.diagnosis->tensors)
      log_warning("--replay has no effect: no tensors were recorded, only statistics");
  }

  /// Prints to standard output, where people and grep look, unless the results themselves go there.
  static void print_summary(const CompareReport& report, const CompareOptions& options,
                            const Context& context) {
    if (log_level() == LogLevel::quiet) return;
    const bool to_errors = options.outputs.file == "-";
    const int descriptor = to_errors ? STDERR_FILENO : STDOUT_FILENO;
    const bool color = to_errors ? context.color : context.output_color;
    const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
    const Screen screen{report::terminal_width(descriptor), color,
                        color && report::is_terminal(descriptor) && report::shows_links(environment)};
    SummaryOptions shown = options.summary;
    shown.details = shown.details || log_level() >= LogLevel::verbose;
    const std::string text = render_summary(report, shown, screen);
    if (to_errors) {
      log_info(text);
    } else {
      write_all(STDOUT_FILENO, text, "standard output");
    }
  }

  Typed typed_;
  // Some of these exclude each other.
  Option against_;
  Option config_;
  Option python_rules_;
  Option formats_;
  Option strict_;
  Option stack_mode_;
  Option replay_;
  Option explain_;
  Option top_;
  Option by_;
  Option noise_floor_;
  Option first_;
  Option diff_analyze_;
};

}  // namespace

std::unique_ptr<Command> make_command() {
  return std::make_unique<CompareCommand>();
}

}  // namespace msprobe::compare
