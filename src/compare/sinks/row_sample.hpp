// SPDX-License-Identifier: Apache-2.0
// Which rows a page shows where there are more than it can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compare/imports.hpp"

namespace msprobe::compare {

/// What a reader looks for, first: `named` is what the page speaks of.
enum class Urgency : std::uint8_t { named, cause, error, warning, near, other };

/// Lines of one entry, which are shown together.
struct RowGroup {
  std::size_t lines = 0;
  Urgency urgency = Urgency::other;
};

/// Marks the groups that are shown, of at most `room` lines: the more urgent before all others, of those that
/// stand beside them (`near`, which is found here) and of the rest as many as there is room for, spread
/// evenly. Where the urgent ones of a kind are too many, those are spread evenly. Linear in the number of
/// groups.
std::vector<bool> sample_groups(std::vector<RowGroup> groups, std::size_t room);

}  // namespace msprobe::compare
