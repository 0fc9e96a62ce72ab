// SPDX-License-Identifier: Apache-2.0
// The arguments of recorded calls, rebuilt as requests to a runner, and their recorded outputs.
#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "dump/member_stream.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "precheck/acc_check/recorded.hpp"
#include "precheck/acc_check/recorded_statistics.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "precheck/calls/plan.hpp"
#include "precheck/calls/request.hpp"
#include "precheck/runner/shared_file.hpp"
#include "support/error.hpp"

namespace msprobe::precheck {
namespace {

/// A shape may ask for more than this; the disk is full then.
constexpr rlim_t kMostArguments = 1 << 20;

SharedFile small_file() {
  const rlimit limit = {kMostArguments, kMostArguments};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);
  return {};
}

void check_request(const CallRequest& request, const SharedFile& payload) {
  dump::read_json(request.json, "a request", 64);
  if (request.json.find('\n') != std::string::npos) throw std::logic_error("a request of several lines");
  for (const RequestTensor& tensor : request.tensors) {
    if (tensor.size == 0) continue;  // it lies nowhere, and a runner does not look
    if (tensor.offset > payload.size() || tensor.size > payload.size() - tensor.offset)
      throw std::logic_error("a tensor beyond the payload");
  }
}

void take_recorded(const dump::Entry& entry) {
  try {
    has_files(entry);
    RecordedOutputs outputs = recorded_outputs(entry, nullptr);
    const CallOutput reference = shaped_like({}, outputs.elements);
    judge_recorded_statistics("Torch.exp.0.forward.output.", entry, reference);
    pair_gradients(reference, std::move(outputs.elements));
  } catch (const NotRebuilt&) {
  }
}

}  // namespace
}  // namespace msprobe::precheck

FUZZ_TARGET(precheck_request)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  using namespace msprobe::precheck;
  static SharedFile payload = small_file();
  const auto input = fuzz_input(data, size);
  RequestBuilder builder(nullptr, {.hf32 = true, .seed = {}});
  CallPlan plan;
  try {
    plan = plan_calls(*input, {}, false);
  } catch (const FormatError&) {
    return;
  }
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    const PlannedCall& call = plan.calls[i];
    try {
      dump::Entry forward;
      dump::Entry backward;
      dump::read_entry_at(*input, call.forward.offset, call.forward.size, forward, call.name);
      if (call.backward)
        dump::read_entry_at(*input, call.backward->offset, call.backward->size, backward, call.name);
      take_recorded(forward);
      check_request(builder.build(i, call, forward, call.backward ? &backward : nullptr, payload), payload);
    } catch (const NotRebuilt&) {
    } catch (const Error&) {
    }
  }
}
