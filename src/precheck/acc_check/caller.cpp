// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/caller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dump/member_stream.hpp"
#include "dump/operations.hpp"
#include "precheck/acc_check/error_data.hpp"
#include "precheck/acc_check/narrow.hpp"
#include "precheck/acc_check/overflow.hpp"
#include "precheck/acc_check/recorded.hpp"
#include "precheck/acc_check/recorded_statistics.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using std::chrono::milliseconds;

void add_reason(OperationReport& result, PrecheckVerdict verdict, const std::string& reason) {
  if (!reason.empty() &&
      (result.reason.empty() || verdict > std::max(result.forward_verdict, result.backward_verdict)))
    result.reason = reason;
}

void tell(OperationReport& result, CallDirection direction, PythonStatus status, PrecheckVerdict verdict) {
  const bool forward = direction == CallDirection::forward;
  (forward ? result.forward : result.backward) = status;
  (forward ? result.forward_verdict : result.backward_verdict) = verdict;
}

/// Reports the direction as not made; the other one stays.
void skip_direction(OperationReport& result, CallDirection direction, const std::string& reason) {
  add_reason(result, PrecheckVerdict::skip, reason);
  result.rows.push_back(skipped_row(result.name, direction, reason, reason));
  tell(result, direction, PythonStatus::skip, PrecheckVerdict::skip);
  result.message = reason;
}

void take_judgement(OperationReport& result, CallDirection direction, CallJudgement judgement) {
  add_reason(result, judgement.verdict, judgement.reason);
  tell(result, direction, judgement.status, judgement.verdict);
  for (OutputRow& row : judgement.rows) result.rows.push_back(std::move(row));
}

std::string error_reason(const CallError& error) {
  if (error.ours) return first_line(error.text);
  const std::string_view where = error.stage == "device"     ? "the call on the device"
                                 : error.stage == "backward" ? "backward"
                                                             : "the call of the reference";
  return fmt::format("{} raised {}: {}", where, display(error.kind), first_line(error.text));
}

/// Keeps the first element of a tuple.
void keep_first(CallOutput& output) {
  auto* const list = std::get_if<CallOutput::List>(&output.value);
  if (list == nullptr || list->elements.empty()) return;
  CallOutput first = std::move(list->elements.front());
  output = std::move(first);
}

}  // namespace

OperationReport skipped(const std::string& name, const std::string& reason) {
  OperationReport result;
  result.name = name;
  skip_direction(result, CallDirection::forward, reason);
  result.backward = PythonStatus::skip;
  return result;
}

PreparedCall Caller::prepare(std::uint64_t index, RequestBuilder& builder) {
  const PlannedCall& call = job_.plan.calls[index];
  PreparedCall prepared;
  try {
    if (!call.skip.empty()) throw Excluded(call.skip);
    dump::read_entry_at(job_.json, call.forward.offset, call.forward.size, prepared.forward, call.name);
    if (call.backward)
      dump::read_entry_at(job_.json, call.backward->offset, call.backward->size, prepared.backward,
                          call.name);
    prepared.request = builder.build(index, call, prepared.forward,
                                     call.backward ? &prepared.backward : nullptr, runner_.inputs());
  } catch (const Excluded& rule) {
    prepared.refused = skipped(call.name, rule.what());
    prepared.refused.excluded = true;
  } catch (const Error& error) {
    prepared.refused = skipped(call.name, error.what());
  }
  return prepared;
}

std::optional<CallAnswer> Caller::ask(std::uint64_t index, const PreparedCall& prepared, std::string& lost) {
  const milliseconds limit(static_cast<std::int64_t>(job_.options.time_limit * 1000));
  try {
    runner_.start();
    runner_.outputs().clear();
    runner_.process().send(prepared.request.json + '\n', limit);
    CallAnswer answer = read_answer(runner_.process().receive(limit), index, runner_.outputs());
    if (answer.leave) runner_.end();
    return answer;
  } catch (const RunnerLost& reason) {
    lost = reason.what();
    if (const std::string& told = runner_.process().messages(); !told.empty()) log_verbose(display(told));
    runner_.end();
    ++lost_;
  }
  return std::nullopt;
}

OperationReport Caller::make(std::uint64_t index, const PreparedCall& prepared) {
  if (!prepared.refused.rows.empty()) return prepared.refused;
  const PlannedCall& call = job_.plan.calls[index];
  std::string lost;
  std::optional<CallAnswer> answer;
  try {
    answer = ask(index, prepared, lost);
  } catch (const IoError& error) {
    return skipped(call.name, error.what());
  }
  if (!answer) {
    OperationReport result = skipped(call.name, "the runner " + lost);
    save(call, prepared, nullptr, result);
    return result;
  }
  if (answer->error && !answer->forward) return skipped(call.name, error_reason(*answer->error));
  return judged(call, prepared, *answer);
}

OperationReport Caller::judged(const PlannedCall& call, const PreparedCall& prepared, CallAnswer& answer) {
  const CheckOptions& options = job_.options;
  OperationReport result;
  result.name = call.name;
  RecordedOutputs recorded;
  const bool first_alone = dump::is_listed("first_output_alone", call.api.name);
  if (first_alone) {
    keep_first(answer.forward->reference);
    keep_first(answer.forward->device);
  }
  if (options.overflow) {
    const bool reference = overflows(answer.forward->reference);
    const bool device = overflows(answer.forward->device);
    result.overflow = reference && device ? CallOverflow::both
                      : reference         ? CallOverflow::reference
                      : device            ? CallOverflow::device
                                          : CallOverflow::none;
    return result;
  }
  if (options.recorded) {
    try {
      if (has_files(prepared.forward)) {
        recorded = recorded_outputs(prepared.forward, job_.tensors.get());
        if (first_alone && recorded.elements.size() > 1) recorded.elements.resize(1);
        answer.forward->device = shaped_like(answer.forward->reference, std::move(recorded.elements));
      } else {
        take_judgement(result, CallDirection::forward,
                       judge_recorded_statistics(call.name + ".forward.output.", prepared.forward,
                                                 answer.forward->reference, first_alone));
      }
    } catch (const Error& error) {
      skip_direction(result, CallDirection::forward, error.what());
    }
  }
  if (result.rows.empty()) {
    if (job_.seen) job_.seen(CallDirection::forward, answer.forward->reference, answer.forward->device, {});
    take_judgement(result, CallDirection::forward,
                   judge(call.api, CallDirection::forward, answer.forward->reference, answer.forward->device,
                         job_.standards, options.selection, prepared.inputs()));
  }
  judge_backward(call, prepared, answer, result);
  save(call, prepared, &answer, result);
  return result;
}

void Caller::save(const PlannedCall& call, const PreparedCall& prepared, const CallAnswer* answer,
                  const OperationReport& result) const {
  const std::string& folder = job_.error_data;
  if (folder.empty()) return;
  const auto is_bad = [](PrecheckVerdict verdict) {
    return verdict == PrecheckVerdict::error || verdict == PrecheckVerdict::warning;
  };
  if (answer != nullptr && !is_bad(result.forward_verdict) && !is_bad(result.backward_verdict)) return;
  try {
    save_inputs(folder, call.name, prepared.request, runner_.inputs());
    if (answer == nullptr) return;
    save_outputs(folder, call.name, "forward.output.bench", answer->forward->reference);
    save_outputs(folder, call.name, "forward.output.device", answer->forward->device);
    if (!answer->backward) return;
    save_outputs(folder, call.name, "backward.output.bench", answer->backward->reference);
    save_outputs(folder, call.name, "backward.output.device", answer->backward->device);
  } catch (const IoError& error) {
    log_warning(error.what());
  }
}

void Caller::judge_backward(const PlannedCall& call, const PreparedCall& prepared, CallAnswer& answer,
                            OperationReport& result) const {
  const CheckOptions& options = job_.options;
  if (!prepared.request.backward.skip.empty()) {
    skip_direction(result, CallDirection::backward, prepared.request.backward.skip);
    return;
  }
  if (!prepared.request.backward.wanted) return;
  if (!answer.backward) {
    skip_direction(result, CallDirection::backward,
                   answer.error ? error_reason(*answer.error) : "the runner gave no gradients");
    return;
  }
  const InputFacts inputs = prepared.inputs();
  std::vector<std::vector<std::byte>> narrowed;
  if (!options.recorded) {
    narrow_gradients(answer.backward->device, prepared.request.cast, narrowed);
    take_judgement(result, CallDirection::backward,
                   judge(call.api, CallDirection::backward, answer.backward->reference,
                         answer.backward->device, job_.standards, options.selection, inputs));
    return;
  }
  std::string reason;
  try {
    const RecordedOutputs recorded = recorded_outputs(prepared.backward, job_.tensors.get());
    // If autograd splits an operation into several, the dump has the gradients of the last one.
    std::optional<CallJudgement> best;
    GradientPairs best_pairs;
    for (const CallOutput* made : {&answer.backward->reference, &answer.backward->last}) {
      try {
        GradientPairs pairs = pair_gradients(*made, recorded.elements);
        narrow_gradients(pairs.recorded, prepared.request.cast, narrowed);
        CallJudgement judgement = judge(call.api, CallDirection::backward, pairs.reference, pairs.recorded,
                                        job_.standards, options.selection, inputs);
        if (best && judgement.verdict >= best->verdict) continue;
        best = std::move(judgement);
        best_pairs = std::move(pairs);
      } catch (const NotRebuilt& refused) {
        if (reason.empty()) reason = refused.what();
      }
    }
    if ((!best || best->verdict > PrecheckVerdict::pass) &&
        passes_gradient_through(call.api, prepared.forward, prepared.backward, job_.tensors.get())) {
      best.reset();
      reason = "an in-place operation on a view: the dump has the incoming gradient, not the outgoing one";
    }
    if (best) {
      if (job_.seen)
        job_.seen(CallDirection::backward, best_pairs.reference, best_pairs.recorded, best_pairs.places);
      take_judgement(result, CallDirection::backward, std::move(*best));
      return;
    }
  } catch (const Error& error) {
    reason = error.what();
  }
  skip_direction(result, CallDirection::backward, reason);
}

}  // namespace msprobe::precheck
