// SPDX-License-Identifier: Apache-2.0
// Where two implementations of one model compute the same, known by what is in a tensor and not by names.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// Tensors that forward calls put out, each content once, in the order of execution: items by number.
std::vector<std::uint32_t> distinct_outputs(const dump::Side& side,
                                            const std::function<bool(std::uint32_t api)>& counts);

struct Meeting {
  std::size_t target = 0;  // places in the lists of both sides
  std::size_t golden = 0;
  double error = 0;    // as measuring::Measure has it
  bool equal = false;  // within rounding
};

/// Pairs of tensors with as many elements and nearly the same statistics, in an order that both sides go
/// through; of several such orders the one with most that are equal. `drift`: what was seen of rounding
/// before these steps. O(n log n) for lists of n.
std::vector<Meeting> meeting_points(const dump::Side& target, const std::vector<std::uint32_t>& outputs,
                                    const dump::Side& golden,
                                    const std::vector<std::uint32_t>& golden_outputs, double drift);

}  // namespace msprobe::diagnosis
