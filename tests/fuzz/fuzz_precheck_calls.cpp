// SPDX-License-Identifier: Apache-2.0
// The calls of a dump.json, and the answer of a runner: the same bytes are taken for both.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "precheck/calls/plan.hpp"
#include "precheck/runner/answer.hpp"
#include "precheck/runner/process.hpp"
#include "precheck/runner/shared_file.hpp"

FUZZ_TARGET(precheck_calls)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  using namespace msprobe::precheck;
  static SharedFile outputs = [] {
    SharedFile file;
    file.append(std::vector<std::byte>(256));
    return file;
  }();
  const auto input = fuzz_input(data, size);
  CallLists lists;
  lists.black.insert("exp");
  unless_refused([&] {
    const CallPlan plan = plan_calls(*input, lists, true);
    for (const PlannedCall& call : plan.calls) {
      if (call.forward.offset + call.forward.size > size) throw std::logic_error("an entry beyond the file");
    }
  });
  try {
    const CallAnswer answer = read_answer({reinterpret_cast<const char*>(data), size}, 1, outputs);
    if (!answer.forward && !answer.error) throw std::logic_error("an answer without anything");
  } catch (const RunnerLost&) {
  }
}
