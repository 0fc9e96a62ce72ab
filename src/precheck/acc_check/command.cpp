// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/acc_check/against.hpp"
#include "precheck/acc_check/check.hpp"
#include "precheck/acc_check/config.hpp"
#include "precheck/acc_check/online_folder.hpp"
#include "precheck/acc_check/online_listen.hpp"
#include "precheck/acc_check/online_pipe.hpp"
#include "precheck/acc_check/references.hpp"
#include "precheck/acc_check/summary.hpp"
#include "precheck/result_files/result_files.hpp"
#include "precheck/runner/runner.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/gate.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/output_file.hpp"
#include "support/output_folder.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr int kMaxRunners = 64;
constexpr const char* kRunningTraining = "-";
constexpr int kStandardInput = 0;
constexpr const char* kOfTrainings = "the trainings say what is judged, and how";

class AccCheckCommand final : public Command {
 public:
  explicit AccCheckCommand(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override {
    return name_ == "acc_check"         ? "Call the operations of a dump again and judge each in isolation"
           : name_ == "multi_acc_check" ? "The same with several runners and devices"
           : name_ == "run_ut"          ? "acc_check by its name of releases 8.x"
                                        : "multi_acc_check by its name of releases 8.x";
  }

  void declare(OptionList& options) override {
    Option api_info =
        options.add("-api_info,--api_info_file=FILE", check_.dump_json, "dump.json of one rank");
    api_info
        .details(
            "If tensors were dumped, <dump_tensor_data> is beside it.\n"
            "A folder is one that running trainings write their calls to (task <acc_check> of the recorder "
            "with "
            "<nfs_path>); <-d> is where the references are computed then, by default on the CPU.\n"
            "<-> stands for a running training that sends its calls through standard input: the task "
            "<acc_check> of the recorder starts this command so.")
        .once();
    Option listen = options.add("--listen=HOST:PORT", listen_,
                                "Judge what running trainings send over the network to this address");
    listen.details(
        "They have this address as <server> in the section <acc_check> of the recorder's configuration.\n"
        "Port 0 stands for any free port; the first line says which.\n"
        "No host, or 0.0.0.0 or ::, stands for all addresses of this machine.\n"
        "<-d> is where the references are computed then, by default on the CPU.\n"
        "The command ends when all trainings that have begun have ended.");
    Option tls = options.add("--tls=DIR", tls_, "Folder of the certificates for --listen");
    tls.details(
           "It holds <ca.crt>, <server.crt> and <server.key>, and may hold <crl.pem>, in the form PEM; both "
           "sides have to show "
           "a certificate that <ca.crt> has signed (docs/online-check.md).\n"
           "Without it the command accepts only trainings of this machine, at an address such as localhost.")
        .needs(listen);
    api_info.required({listen});
    options.add("-o,--out_path=DIR", folder_, "Folder for the two result files")
        .details("It is created where missing.");
    Option recorded =
        options.add_flag("--recorded", check_.recorded,
                         "Judge the recorded result of each operation; call nothing on a device");
    Option against = options.add("--against=FILE", against_,
                                 "dump.json of a second run, B: find whose outputs do not follow from their "
                                 "inputs; implies --recorded");
    options
        .add("-d,--device=DEVICE", devices_,
             "cpu, cuda, npu, cuda:1, or device indices; default: the device present")
        .details("The default is an accelerator if there is one, else the CPU.")
        .any_number_of_values(1);
    Option runners = options.add("-n,--num_splits=N", check_.runners,
                                 "Number of concurrent runners; default: as many as fit");
    runners
        .details(
            "At most the number of threads (--jobs).\n"
            "The default is one per core, or one per accelerator.")
        .in_range(0, kMaxRunners);
    options.add("--python=FILE", check_.python,
                "Python interpreter with PyTorch, and MindSpore for its dumps");
    options.add("--timeout=SECONDS", check_.time_limit, "Time limit for one operation, in seconds; 0: none")
        .details("It covers forward and backward, on both sides.")
        .not_negative();
    const Option result_csv =
        options
            .add("-csv_path,--result_csv_path=FILE", result_csv_,
                 "Continue this accuracy_checking_result_TIME.csv: skip the operations it has")
            .details("The details file must be beside it.");
    const Option filter = options
                              .add_flag("--filter_api", check_.filter,
                                        "Check only the first of calls that differ in values only (also -f)")
                              .details("-f means this option where no framework follows.");
    Option config = options.add("-config,--config_path=FILE", config_,
                                "config.json with white_list, black_list, error_data_path");
    config.details(
        "They are in its section <acc_check> or <run_ut>; the lists contain names of operations such as "
        "<softmax> or <linalg.inv>.");
    Option references =
        options.add("--references=FILE", references_,
                    "YAML file of references for NPU operators: functions of the Python file beside it");
    references.details(
        "For example <operators: {npu_x: {forward: f}}>, for a function of the Python file of the same "
        "name (<refs.py> of <refs.yaml>), which the runners call.\n"
        "They take precedence over the 15 built-in references (docs/precheck.md).");
    Option error_data = options.add_flag("-save_error_data,--save_error_data", save_error_data_,
                                         "Save inputs and outputs of failed operations as .pt files");
    error_data.details("They go to <ut_error_dataTIME> below the <error_data_path> of --config_path.");
    options
        .add_flag("--wait", wait_, "With a folder in -api_info: wait for trainings that have not begun yet")
        .details("Without it a folder without calls is an error.");
    Option jit = options.add_flag("--jit_compile", check_.jit, "Compile operations on an NPU (also -j)");
    jit.details("-j means this option where no number follows.");
    const Option release = options.add("--release", check_.selection,
                                       {{"8", Selection::release_8}, {"26", Selection::release_26}},
                                       "Release whose choice of criteria fills the details");
    options.add("--standards=FILE", standards_,
                "YAML file with lists and limits to replace the built-in ones");
    gate_.declare(options, "operations", {"error", "warning", "skip", "never"})
        .details(
            "An operation that should be called, but raises, lacks its runner or cannot be judged, exits "
            "with "
            "2, and so do a dump and a training without one that can.\n"
            "With --against a finding on either side counts, and an operation missing on one side is a "
            "warning.");
    options.add_flag("--python-rules", python_rules_, "Has no effect").manual_only();
    not_of_trainings_ = {result_csv, filter,     against,    recorded, runners,
                         config,     references, error_data, jit,      release};
    listen.excludes({api_info}).excludes(not_of_trainings_, kOfTrainings);
    against.excludes({result_csv}).excludes({filter}, "each side would keep other calls");
  }

  Outcome run(const Context& context) override {
    if (python_rules_) report_without_effect(name(), "--python-rules");
    check_.framework = context.framework;
    const Standards standards = standards_.empty() ? Standards::built_in() : Standards::load(standards_);
    const bool by_trainings =
        !listen_.empty() || check_.dump_json == kRunningTraining || is_folder(check_.dump_json);
    if (by_trainings && context.framework == Framework::mindspore)
      throw UsageError("only trainings of PyTorch send their calls, not those of MindSpore");
    if (!listen_.empty()) return run_listen(standards, context.color);
    for (const Option& option : not_of_trainings_) {
      if (by_trainings && option.given())
        throw UsageError(
            fmt::format("{} is not for calls of running trainings: {}", option.full_name(), kOfTrainings));
    }
    if (check_.dump_json == kRunningTraining && gate_.is_set())
      throw UsageError(
          "--fail-on is not for calls through standard input: the training reports what is wrong");
    if (check_.dump_json == kRunningTraining)
      return judge_child_of_training(kStandardInput, standards, context.color) ? Outcome::clean
                                                                               : Outcome::failure;
    if (is_folder(check_.dump_json)) return run_folder(standards, context.color);
    check_.recorded |= !against_.empty();
    CheckOptions options = check_options();
    if (!against_.empty()) return run_against(std::move(options), standards, context);
    const CallPlan plan = read_plan(options);
    const ResultStyle style{.selection = options.selection};
    std::optional<ResultFiles> files;
    std::string time;
    if (!result_csv_.empty()) {
      files.emplace(ResultFiles::resume(result_csv_, style));
      options.done = files->finished();
      time = files->time();
    } else {
      check_output_folder(folder_);
      time = claim_time_stamp(folder_);
    }
    // The files are created with the first result.
    const auto open_files = [&]() -> ResultFiles& {
      if (!files) {
        create_directories(folder_);
        files.emplace(ResultFiles::create(folder_, time, style));
      }
      return *files;
    };
    Tally tally;
    RunnerPool runners;
    const CheckSummary summary = check_calls(
        options, plan, standards, error_data(time), runners,
        [&](const OperationReport& result) {
          open_files().add(result);
          tally.take(result);
        },
        context.progress);
    return conclude(summary, tally, open_files(), context.color);
  }

 private:
  CheckOptions check_options() {
    CheckOptions options = check_;
    options.time_limit = std::min(options.time_limit, kLongestSeconds);
    options.devices = devices_of(devices_);
    if (!references_.empty()) {
      OwnReferences own = read_references(references_);
      for (const std::string& warning : own.warnings) log_warning(warning);
      options.references = std::move(own.told);
    }
    error_folder_ = ".";
    if (!config_.empty()) {
      CheckConfig config = read_check_config(config_, name_.ends_with("run_ut") ? "run_ut" : "acc_check");
      for (const std::string& warning : config.warnings) log_warning(warning);
      options.lists = std::move(config.lists);
      if (!config.error_data_path.empty()) error_folder_ = config.error_data_path;
    }
    return options;
  }

  Outcome conclude(const CheckSummary& summary, const Tally& tally, const ResultFiles& files,
                   bool color) const {
    for (const std::string& warning : summary.warnings) log_warning(warning);
    std::string text = summary_text(summary, tally, check_.recorded, color);
    text += "\n  written: " + display(files.result_path());
    text += "\n  written: " + display(files.details_path());
    log_info(text);
    const std::size_t errors = tally.of(PrecheckVerdict::error);
    const std::size_t warnings = tally.of(PrecheckVerdict::warning);
    const std::size_t skips = tally.of(PrecheckVerdict::skip);
    Coverage coverage = tally.coverage();
    if (summary.done_before > 0)
      coverage.miss("their verdicts are of an earlier run", result_csv_, summary.done_before);
    return outcome(errors, warnings, skips, coverage);
  }

  /// The outcome by the numbers of operations with each verdict.
  Outcome outcome(std::size_t errors, std::size_t warnings, std::size_t skips,
                  const Coverage& coverage) const {
    const bool found =
        errors > 0 || (gate_.level() != "error" && warnings > 0) || (gate_.level() == "skip" && skips > 0);
    return gate_.end(found, coverage);
  }

  /// Judges trainings that write to a folder.
  Outcome run_folder(const Standards& standards, bool color) const {
    const OnlineSettings settings = online_settings();
    if (!wait_ && !has_calls(check_.dump_json))
      throw FormatError(display(check_.dump_json),
                        "holds no calls of a training with task acc_check; --wait waits for them");
    return online_outcome(judge_folder(check_.dump_json, settings, standards, color));
  }

  /// Judges trainings that send their calls over the network.
  Outcome run_listen(const Standards& standards, bool color) const {
    ListenAddress address = read_listen_address(listen_);
    address.tls = tls_;
    const OnlineSettings settings = online_settings();
    return online_outcome(judge_calls_of_network(address, settings, standards, color));
  }

  OnlineSettings online_settings() const {
    OnlineSettings settings;
    settings.results = folder_;
    settings.python = check_.python;
    settings.device = devices_.empty() ? "cpu" : devices_of(devices_).front();
    settings.time_limit = std::min(check_.time_limit, kLongestSeconds);
    check_output_folder(settings.results);
    return settings;
  }

  Outcome online_outcome(const OnlineCounts& counts) const {
    return outcome(counts.errors, counts.warnings, counts.skips, counts.coverage);
  }

  Outcome run_against(CheckOptions check, const Standards& standards, const Context& context) {
    AgainstOptions options;
    options.check = std::move(check);
    options.other_json = against_;
    options.folder = folder_;
    check_output_folder(options.folder);
    options.time = claim_time_stamp(options.folder);
    options.style.selection = options.check.selection;
    options.error_data = error_data(options.time);
    const AgainstResult result = check_against(options, standards, context.progress);
    std::size_t errors = 0;
    std::size_t warnings = 0;
    std::size_t skips = 0;
    Coverage coverage;
    for (std::size_t side = 0; side < 2; ++side) {
      for (const std::string& warning : result.summaries[side].warnings) log_warning(warning);
      const SideCounts& counts = result.sides.counts[side];
      errors += counts.errors;
      warnings += counts.warnings + counts.missing;
      skips += counts.open;
      coverage.add(result.coverage[side]);
      if (result.coverage[side].compared == 0)
        coverage.miss("no operation of the dump has a verdict", side == 0 ? check_.dump_json : against_);
    }
    log_info(against_text(result, options, context.color));
    return outcome(errors, warnings, skips, coverage);
  }

  std::string error_data(const std::string& time) const {
    return save_error_data_ ? error_folder_ + "/ut_error_data" + time : "";
  }

  std::string_view name_;
  std::vector<Option> not_of_trainings_;  // options without a meaning for calls of running trainings
  CheckOptions check_;
  std::vector<std::string> devices_;
  std::string listen_;
  std::string tls_;
  std::string folder_ = "./";
  std::string against_;
  std::string result_csv_;
  std::string config_;
  std::string references_;
  std::string standards_;
  Gate gate_;
  bool save_error_data_ = false;
  bool wait_ = false;
  bool python_rules_ = false;
  std::string error_folder_;
};

}  // namespace

std::unique_ptr<Command> make_acc_check(std::string_view name) {
  return std::make_unique<AccCheckCommand>(name);
}

}  // namespace msprobe::precheck
