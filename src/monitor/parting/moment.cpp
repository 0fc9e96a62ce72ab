// SPDX-License-Identifier: Apache-2.0
#include "monitor/parting/moment.hpp"

#include <array>

namespace msprobe::monitor {

TrainingPhase phase_of(std::string_view quantity, bool first_layout) {
  if (quantity == "param_origin") return TrainingPhase::before;
  if (quantity == "exp_avg" || quantity == "exp_avg_sq")
    return first_layout ? TrainingPhase::before : TrainingPhase::optimizer;
  if (quantity == "actv_grad" || quantity == "grad_unreduced") return TrainingPhase::backward;
  if (quantity == "comm" || quantity == "grad_reduced") return TrainingPhase::communication;
  if (quantity == "mg_direction" || quantity == "update" || quantity == "ratio")
    return TrainingPhase::optimizer;
  if (quantity == "param_updated") return TrainingPhase::after;
  return TrainingPhase::forward;
}

std::string_view name_of(TrainingPhase phase) {
  constexpr std::array<std::string_view, 6> kNames = {
      "state before the step",  "forward",   "backward",
      "reduction of gradients", "optimizer", "parameters after the step"};
  return kNames[static_cast<std::size_t>(phase)];
}

Moment moment_of(std::int64_t step, const Track& track, std::size_t place, bool first_layout) {
  const TrainingPhase phase = phase_of(track.quantity, first_layout);
  const bool of_micro_step = phase == TrainingPhase::forward || phase == TrainingPhase::backward;
  // A quantity without a micro step belongs to the last one.
  const std::int64_t micro_step =
      of_micro_step ? track.micro_step.value_or(phase == TrainingPhase::forward ? 0 : INT64_MAX) : 0;
  return {step, of_micro_step ? TrainingPhase::forward : phase, micro_step, phase, place};
}

}  // namespace msprobe::monitor
