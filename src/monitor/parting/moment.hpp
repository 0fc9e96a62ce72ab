// SPDX-License-Identifier: Apache-2.0
// The moment within a training step at which each quantity is measured: an earlier one may be the cause of a
// later one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "monitor/input/tracks.hpp"

namespace msprobe::monitor {

enum class TrainingPhase : std::uint8_t {
  before,  // parameters, and optimizer moments from earlier steps
  forward,
  backward,       // gradients before they are reduced
  communication,  // gradients after they are reduced
  optimizer,
  after,  // updated parameters
};

/// `first_layout`: the first monitor records the moments before the optimizer's step, the second one after
/// it.
TrainingPhase phase_of(std::string_view quantity, bool first_layout);

/// "forward", "backward", "reduction of gradients", ...
std::string_view name_of(TrainingPhase phase);

/// Orders the events of a training, micro step by micro step.
struct Moment {
  std::int64_t step = 0;
  TrainingPhase stage = TrainingPhase::before;  // forward for everything inside a micro step
  std::int64_t micro_step = 0;
  TrainingPhase phase = TrainingPhase::before;
  std::size_t place = 0;  // in the order of first appearance

  auto operator<=>(const Moment&) const = default;  // NOLINT: clang-tidy takes its 0 for a null pointer
};

Moment moment_of(std::int64_t step, const Track& track, std::size_t place, bool first_layout);

}  // namespace msprobe::monitor
