// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/command.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/acc_check/check.hpp"
#include "precheck/acc_check/config.hpp"
#include "precheck/result_files/result_files.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kShownCalls = 10;
constexpr std::size_t kMaxRunners = 64;

struct TypedCheck {
  std::string dump_json;
  std::string output = "./";
  std::string result_csv;
  std::string config;
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
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size();
    if ((!is_kind || colon != std::string::npos) && !is_number)
      throw UsageError(
          fmt::format("-d/--device: '{}' is neither a number nor one of cpu, cuda, npu", display(word)));
    if (!seen.insert(word).second) throw UsageError("-d/--device: a device is named twice");
    devices.push_back(is_kind ? word : "auto:" + word);
  }
  if (devices.empty()) devices.emplace_back("auto");
  if (only_first) devices.resize(1);
  return devices;
}

/// What the summary on the terminal tells.
class Tally {
 public:
  void take(const OperationReport& result, bool python_rules) {
    const Verdict verdict =
        python_rules ? of_status(result) : std::max(result.forward_verdict, result.backward_verdict);
    ++counts_[static_cast<std::size_t>(verdict)];
    const bool bad = verdict == Verdict::error || verdict == Verdict::warning;
    if (!bad || shown_.size() >= kShownCalls) {
      hidden_ += bad;
      return;
    }
    shown_.push_back({result.name, verdict, python_rules ? std::string() : result.reason});
  }

  std::size_t of(Verdict verdict) const { return counts_[static_cast<std::size_t>(verdict)]; }

  std::string lines(bool color) const {
    std::string text;
    for (const Shown& call : shown_) {
      const bool error = call.verdict == Verdict::error;
      text += "\n  " +
              report::paint(error ? "error  " : "warning", error ? report::Color::red : report::Color::yellow,
                            color) +
              "  " + display(call.name);
      if (!call.reason.empty()) text += "  " + display(call.reason);
    }
    if (hidden_ > 0) text += fmt::format("\n  and {} more", human_count(hidden_));
    return text;
  }

 private:
  struct Shown {
    std::string name;
    Verdict verdict;
    std::string reason;
  };

  static Verdict of_status(const OperationReport& result) {
    const auto one = [](Status status) {
      switch (status) {
        case Status::pass:
          return Verdict::pass;
        case Status::skip:
          return Verdict::skip;
        case Status::warning:
          return Verdict::warning;
        case Status::error:
          return Verdict::error;
        case Status::none:
          break;
      }
      return Verdict::none;
    };
    return std::max(one(result.forward), one(result.backward));
  }

  std::size_t counts_[5] = {};
  std::vector<Shown> shown_;
  std::size_t hidden_ = 0;
};

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
    CheckOptions options = check_options();
    const Standards standards =
        typed_.standards.empty() ? Standards::built_in() : Standards::load(typed_.standards);
    const CallPlan plan = read_plan(options);
    const ResultStyle style{options.selection, !typed_.python_rules, kDecimals};
    std::optional<ResultFiles> files;
    std::string time = fmt::format("{:%Y%m%d%H%M%S}", fmt::localtime(std::time(nullptr)));
    const std::string folder = typed_.output.empty() ? "." : typed_.output;
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
    const CheckSummary summary = check_calls(
        options, plan, standards, typed_.save_error_data ? error_folder_ + "/ut_error_data" + time : "",
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
    const std::size_t errors = tally.of(Verdict::error);
    const std::size_t warnings = tally.of(Verdict::warning);
    const std::size_t passes = tally.of(Verdict::pass);
    const std::size_t skips = tally.of(Verdict::skip);
    std::string text = fmt::format("{} operations", human_count(summary.calls));
    if (!summary.torch.empty()) {
      text += typed_.recorded
                  ? fmt::format(" as they were recorded, by PyTorch {}", display(summary.torch))
                  : fmt::format(" on {}, PyTorch {}", display(summary.device), display(summary.torch));
    }
    text += fmt::format(": {} pass, ", human_count(passes));
    text += report::count_text(errors, "error",
                               errors == 0 ? report::Severity::none : report::Severity::error, color);
    text += ", ";
    text += report::count_text(warnings, "warning",
                               warnings == 0 ? report::Severity::none : report::Severity::warning, color);
    text += fmt::format(", {} SKIP", human_count(skips));
    if (summary.done_before > 0)
      text += fmt::format("; {} were there before", human_count(summary.done_before));
    if (summary.duplicates > 0)
      text += fmt::format("; {} left out that differ in values only", human_count(summary.duplicates));
    if (summary.made_up > 0) text += fmt::format("; {} with random data", human_count(summary.made_up));
    if (summary.lost_runners > 0)
      text += fmt::format("; {} lost a runner", human_count(summary.lost_runners));
    text += tally.lines(color);
    text += "\n  written: " + display(files.result_path());
    text += "\n  written: " + display(files.details_path());
    log_info(text);
    if (typed_.fail_on == "never") return Outcome::clean;
    // Where nothing was judged nothing passed.
    const bool judged = passes + errors + warnings + summary.done_before > 0;
    const bool found = errors > 0 || !judged || (typed_.fail_on != "error" && warnings > 0) ||
                       (typed_.fail_on == "skip" && skips > 0);
    return found ? Outcome::findings : Outcome::clean;
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
