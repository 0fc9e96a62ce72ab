// SPDX-License-Identifier: Apache-2.0
// Chooses the rows that a page shows if there are more than it can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace msprobe::compare {

/// How urgent a row is for a reader, most urgent first; `named` rows are mentioned on the page.
enum class Urgency : std::uint8_t { named, cause, error, warning, near, other };

/// Lines of one entry, which are shown together.
struct RowGroup {
  std::size_t lines = 0;
  Urgency urgency = Urgency::other;
};

/// Marks the groups that are shown, with at most `room` lines in all. More urgent groups go first.
/// sample_groups() itself finds the groups next to urgent ones (`near`). If a kind has more groups than there
/// is room for, those shown are spread evenly. Takes linear time in the number of groups.
std::vector<bool> sample_groups(std::vector<RowGroup> groups, std::size_t room);

}  // namespace msprobe::compare
