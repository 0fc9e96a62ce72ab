// SPDX-License-Identifier: Apache-2.0
// When within a training step each quantity is taken: what comes first may be the cause of what comes later.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "monitor/input/tracks.hpp"

namespace msprobe::monitor {

enum class Phase : std::uint8_t {
  before,  // parameters, and moments that earlier steps left
  forward,
  backward,       // gradients, before they are reduced
  communication,  // gradients, after they are reduced
  optimizer,
  after,  // parameters
};

/// `first_layout`: the first monitor takes the moments before the optimizer's step, the second one behind it.
Phase phase_of(std::string_view quantity, bool first_layout);

/// "forward", "backward", "reduction of gradients", ...
std::string_view name_of(Phase phase);

/// Orders what happened in a training, micro step by micro step.
struct Moment {
  std::int64_t step = 0;
  Phase stage = Phase::before;  // forward for all that belongs to a micro step
  std::int64_t micro_step = 0;
  Phase phase = Phase::before;
  std::size_t place = 0;  // in the order of first appearance

  auto operator<=>(const Moment&) const = default;  // NOLINT: clang-tidy takes its 0 for a null pointer
};

Moment moment_of(std::int64_t step, const Track& track, std::size_t place, bool first_layout);

}  // namespace msprobe::monitor
