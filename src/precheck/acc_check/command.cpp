// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/acc_check/against.hpp"
#include "precheck/acc_check/check.hpp"
#include "precheck/acc_check/config.hpp"
#include "precheck/acc_check/references.hpp"
#include "precheck/acc_check/summary.hpp"
#include "precheck/result_files/result_files.hpp"
#include "precheck/runner/runner.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kMaxRunners = 64;

struct TypedCheck {
  std::string dump_json;
  std::string against;
  std::string output = "./";
  std::string result_csv;
  std::string config;
  std::string references;
  std::vector<std::string> devices;
  std::size_t runners = 0;
  std::string python = "python3";
  double time_limit = 300;
  bool filter = false;
  bool jit = false;
  bool save_error_data = false;
  bool recorded = false;
  bool python_rules = false;
  std::string release = "26";
  std::string standards;
  std::string fail_on = "never";
};

/// `0`, `cpu`, `cuda`, `npu:1` as a runner takes them: a number alone is of what is there.
std::vector<std::string> devices_of(const std::vector<std::string>& typed, bool only_first) {
  std::vector<std::string> devices;
  std::set<std::string> seen;
  for (const std::string& word : typed) {
    const std::size_t colon = word.find(':');
    const std::string kind = word.substr(0, colon);
    const std::string number = colon == std::string::npos ? "" : word.substr(colon + 1);
    const bool is_kind = kind == "cpu" || kind == "cuda" || kind == "npu";
    const std::string& digits = is_kind ? number : word;
    if ((!is_kind || colon != std::string::npos) && !whole_number<unsigned>(digits))
      throw UsageError(
          fmt::format("-d/--device: '{}' is neither a number nor one of cpu, cuda, npu", display(word)));
    if (!seen.insert(word).second) throw UsageError("-d/--device: a device is named twice");
    devices.push_back(is_kind ? word : "auto:" + word);
  }
  if (devices.empty()) devices.emplace_back("auto");
  if (only_first) devices.resize(1);
  return devices;
}

class AccCheckCommand final : public Command {
 public:
  explicit AccCheckCommand(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override {
    return name_ == "acc_check"         ? "Call the operations of a dump again, each judged alone"
           : name_ == "multi_acc_check" ? "The same by several runners and devices"
           : name_ == "run_ut"          ? "acc_check by its name of releases 8.x"
                                        : "multi_acc_check by its name of releases 8.x";
  }

  std::vector<std::pair<std::string, std::string>> aliases() const override {
    return {{"-api_info", "--api_info_file"},
            {"-csv_path", "--result_csv_path"},
            {"-config", "--config_path"},
            {"-save_error_data", "--save_error_data"}};
  }

  void declare(OptionList& options) override {
    options.add("--api_info_file", typed_.dump_json, "dump.json of one rank").argument("FILE");
    options.add("-o,--out_path", typed_.output, "Folder for the two result files")
        .argument("DIR")
        .show_default();
    options.add_flag("--recorded", typed_.recorded,
                     "Judge what the dump recorded of each operation: nothing is called on a device");
    options
        .add(
            "--against", typed_.against,
            "dump.json of a second run, B: whose outputs do not follow from their inputs? Implies --recorded")
        .argument("FILE");
    options
        .add("-d,--device", typed_.devices,
             "cpu, cuda, npu, cuda:1, or numbers of what is there; without it what is there")
        .argument("DEVICE")
        .any_number_of_values(1);
    options.add("-n,--num_splits", typed_.runners, "How many runners work at once; without it as many as fit")
        .argument("N");
    options.add("--python", typed_.python, "The Python that has PyTorch").argument("FILE").show_default();
    options.add("--timeout", typed_.time_limit, "Seconds that one operation may take; 0: any time")
        .not_negative()
        .show_default();
    options
        .add("--result_csv_path", typed_.result_csv,
             "Go on with this accuracy_checking_result_TIME.csv: what it names is left out")
        .argument("FILE");
    options.add_flag("--filter_api", typed_.filter,
                     "Of calls that differ in nothing but their values only the first (also -f)");
    options.add("--config_path", typed_.config, "config.json with white_list, black_list, error_data_path")
        .argument("FILE");
    options
        .add("--references", typed_.references,
             "YAML file that names functions of the Python file beside it as references of NPU operators")
        .argument("FILE");
    options.add_flag("--save_error_data", typed_.save_error_data,
                     "Save inputs and outputs of what is not right, as .pt files");
    options.add_flag("--jit_compile", typed_.jit, "Operations are compiled, on an NPU (also -j)");
    options.add("--release", typed_.release, "Whose choice of criteria fills the details: 8 or 26")
        .one_of({"8", "26"})
        .show_default();
    options
        .add("--standards", typed_.standards, "YAML file with lists and limits in place of the built-in ones")
        .argument("FILE");
    options.add("--fail-on", typed_.fail_on, "Exit with 1 if there is: error, warning, skip, never")
        .one_of({"error", "warning", "skip", "never"})
        .show_default();
    options.add_flag("--python-rules", typed_.python_rules,
                     "The answer of the Python tool, mistakes included");
  }

  Outcome run(const Context& context) override {
    if (typed_.dump_json.empty()) throw UsageError("-api_info/--api_info_file is required");
    if (context.framework == Framework::mindspore)
      throw UsageError("only operations of PyTorch are called again, not those of MindSpore");
    if (typed_.runners > kMaxRunners)
      throw UsageError(fmt::format("-n/--num_splits: at most {} runners", kMaxRunners));
    if (typed_.python_rules && typed_.recorded)
      throw UsageError("--recorded and --python-rules exclude each other: the Python tool has no such thing");
    check_against_options();
    CheckOptions options = check_options();
    const Standards standards =
        typed_.standards.empty() ? Standards::built_in() : Standards::load(typed_.standards);
    if (!typed_.against.empty()) return run_against(std::move(options), standards, context);
    const CallPlan plan = read_plan(options);
    const ResultStyle style{options.selection, !typed_.python_rules, kDecimals};
    std::optional<ResultFiles> files;
    std::string time = time_stamp();
    const std::string folder = output_folder();
    if (!typed_.result_csv.empty()) {
      files.emplace(ResultFiles::resume(typed_.result_csv, style));
      options.done = files->finished();
      time = files->time();
    } else {
      check_output_folder(folder);
    }
    // Not before something can be told.
    const auto open_files = [&]() -> ResultFiles& {
      if (!files) {
        create_directories(folder);
        files.emplace(ResultFiles::create(folder, time, style));
      }
      return *files;
    };
    Tally tally;
    RunnerPool runners;
    const CheckSummary summary = check_calls(
        options, plan, standards, error_data(time), runners,
        [&](const OperationReport& result) {
          open_files().add(result);
          tally.take(result, typed_.python_rules);
        },
        context.progress);
    return conclude(summary, tally, open_files(), context.color);
  }

 private:
  CheckOptions check_options() {
    CheckOptions options;
    options.dump_json = typed_.dump_json;
    options.python = typed_.python;
    const bool single = name_ == "acc_check" || name_ == "run_ut";
    // The Python tool takes the first device alone.
    options.devices = devices_of(typed_.devices, single && typed_.python_rules);
    options.runners = typed_.runners;
    options.time_limit = typed_.time_limit;
    options.filter = typed_.filter;
    options.selection = typed_.release == "8" ? Selection::release_8 : Selection::release_26;
    options.python_rules = typed_.python_rules;
    options.recorded = typed_.recorded;
    options.jit = typed_.jit;
    if (!typed_.references.empty()) {
      OwnReferences own = read_references(typed_.references);
      for (const std::string& warning : own.warnings) log_warning(warning);
      options.references = std::move(own.told);
    }
    error_folder_ = ".";
    if (!typed_.config.empty()) {
      CheckConfig config =
          read_check_config(typed_.config, name_.ends_with("run_ut") ? "run_ut" : "acc_check");
      for (const std::string& warning : config.warnings) log_warning(warning);
      options.lists = std::move(config.lists);
      if (!config.error_data_path.empty()) error_folder_ = config.error_data_path;
    }
    return options;
  }

  Outcome conclude(const CheckSummary& summary, const Tally& tally, const ResultFiles& files,
                   bool color) const {
    for (const std::string& warning : summary.warnings) log_warning(warning);
    std::string text = summary_text(summary, tally, typed_.recorded, color);
    text += "\n  written: " + display(files.result_path());
    text += "\n  written: " + display(files.details_path());
    log_info(text);
    const std::size_t errors = tally.of(Verdict::error);
    const std::size_t warnings = tally.of(Verdict::warning);
    const std::size_t skips = tally.of(Verdict::skip);
    // Where nothing was judged nothing passed.
    const bool judged = tally.of(Verdict::pass) + errors + warnings + summary.done_before > 0;
    return outcome(errors > 0 || !judged, warnings > 0, skips > 0);
  }

  Outcome outcome(bool errors, bool warnings, bool skips) const {
    if (typed_.fail_on == "never") return Outcome::clean;
    const bool found =
        errors || (typed_.fail_on != "error" && warnings) || (typed_.fail_on == "skip" && skips);
    return found ? Outcome::findings : Outcome::clean;
  }

  void check_against_options() {
    if (typed_.against.empty()) return;
    if (typed_.python_rules)
      throw UsageError("--against and --python-rules exclude each other: the Python tool has no such thing");
    if (!typed_.result_csv.empty())
      throw UsageError("--against and -csv_path/--result_csv_path exclude each other");
    if (typed_.filter)
      throw UsageError("--against and --filter_api exclude each other: each side would keep others");
    typed_.recorded = true;
  }

  Outcome run_against(CheckOptions check, const Standards& standards, const Context& context) {
    AgainstOptions options;
    options.check = std::move(check);
    options.other_json = typed_.against;
    options.folder = output_folder();
    options.time = time_stamp();
    options.style.selection = options.check.selection;
    options.error_data = error_data(options.time);
    check_output_folder(options.folder);
    const AgainstResult result = check_against(options, standards, context.progress);
    std::size_t errors = 0;
    std::size_t warnings = 0;
    std::size_t skips = 0;
    bool judged = true;
    for (std::size_t side = 0; side < 2; ++side) {
      for (const std::string& warning : result.summaries[side].warnings) log_warning(warning);
      const SideCounts& counts = result.sides.counts[side];
      errors += counts.errors;
      warnings += counts.warnings + counts.missing;
      skips += counts.open;
      judged = judged && counts.follow + counts.errors + counts.warnings > 0;
    }
    log_info(against_text(result, options, context.color));
    return outcome(errors > 0 || !judged, warnings > 0, skips > 0);
  }

  std::string output_folder() const { return typed_.output.empty() ? "." : typed_.output; }
  std::string error_data(const std::string& time) const {
    return typed_.save_error_data ? error_folder_ + "/ut_error_data" + time : "";
  }

  std::string_view name_;
  TypedCheck typed_;
  std::string error_folder_;
};

}  // namespace

std::unique_ptr<Command> make_acc_check(std::string_view name) {
  return std::make_unique<AccCheckCommand>(name);
}

}  // namespace msprobe::precheck
