// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "precheck/acc_check/check.hpp"
#include "precheck/acc_check/overflow.hpp"
#include "precheck/runner/runner.hpp"
#include "precheck/standards/standards.hpp"
#include "support/command.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/option_list.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

class RunOverflowCheckCommand final : public Command {
 public:
  std::string_view name() const override { return "run_overflow_check"; }
  std::string_view summary() const override {
    return "Call the operations of a dump again and list those that overflow";
  }

  void declare(OptionList& options) override {
    options.add("-api_info,--api_info_file=FILE", check_.dump_json, "dump.json of one rank")
        .details("If tensors were dumped, <dump_tensor_data> is beside it.")
        .required();
    options
        .add("-d,--device=DEVICE", devices_,
             "cpu, cuda, npu, cuda:1, or a device index; default: the device present")
        .details("The default is an accelerator if there is one, else the CPU.");
    options.add("--python=FILE", check_.python, "Python interpreter with PyTorch");
    options.add("--timeout=SECONDS", check_.time_limit, "Time limit for one operation, in seconds; 0: none")
        .not_negative();
    options.add_flag("--jit_compile", check_.jit, "Compile operations on an NPU (also -j)")
        .details("-j means this option where no number follows.");
  }

  Outcome run(const Context& context) override {
    if (context.framework == Framework::mindspore)
      throw UsageError("only operations of PyTorch are called again, not those of MindSpore");
    check_.framework = Framework::pytorch;
    check_.devices = devices_of(devices_);
    check_.time_limit = std::min(check_.time_limit, kLongestSeconds);
    check_.overflow = true;
    CallPlan plan = read_plan(check_);
    for (PlannedCall& call : plan.calls) call.backward.reset();
    OverflowTally tally;
    RunnerPool runners;
    const CheckSummary summary = check_calls(
        check_, plan, Standards::built_in(), "", runners,
        [&](const OperationReport& result) { tally.take(result); }, context.progress);
    for (const std::string& warning : summary.warnings) log_warning(warning);
    if (!plan.calls.empty()) log_info(tally.text(summary, context.color));
    if (tally.called() == 0) throw Error(display(check_.dump_json) + ": no operation was called");
    return Outcome::clean;
  }

 private:
  CheckOptions check_;
  std::vector<std::string> devices_;
};

}  // namespace

std::unique_ptr<Command> make_run_overflow_check() {
  return std::make_unique<RunOverflowCheckCommand>();
}

}  // namespace msprobe::precheck
