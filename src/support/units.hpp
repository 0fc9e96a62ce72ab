// SPDX-License-Identifier: Apache-2.0
// Units of work, and how they go to the processes of a job: the largest first, to whoever is free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace msprobe {

class UnitQueue {
 public:
  /// `bytes`: what each unit reads. `processes`: how many there are to share them. `able`: those that can
  /// compute each unit; empty: all can.
  UnitQueue(const std::vector<std::uint64_t>& bytes, std::size_t processes,
            const std::vector<std::vector<std::uint32_t>>& able = {});

  std::size_t left() const { return order_.size(); }
  /// For a process that has `busy` units in hand: the next one, and while there are many more small ones
  /// together with it. Empty: none, or none beside those in hand, as those that are left are for processes
  /// that have none.
  std::vector<std::size_t> take(std::size_t process, std::size_t busy);
  /// One that only processes can compute that are gone; nothing if there is none.
  std::optional<std::size_t> stuck_without(const std::vector<bool>& gone) const;
  /// Nobody gets any more.
  void close() { order_.clear(); }

 private:
  bool can(std::uint32_t process, std::size_t unit) const;

  std::vector<std::uint64_t> bytes_;
  std::vector<std::vector<std::uint32_t>> able_;
  std::deque<std::size_t> order_;  // the largest first
  std::size_t processes_;
};

/// Numbers of units, the largest first.
std::vector<std::size_t> largest_first(const std::vector<std::uint64_t>& bytes);

/// Of two ascending lists.
std::vector<std::uint32_t> processes_in_both(const std::vector<std::uint32_t>& a,
                                             const std::vector<std::uint32_t>& b);

/// The share of all processes' time in which they wait for the last one, which took `last` for its part of
/// `sum`.
double idle_share(double last, double sum, std::size_t processes);

/// How units come to lie on processes that take the same time for a byte, one unit after the other.
struct Balance {
  std::vector<std::uint64_t> bytes;  // by process
  std::vector<std::size_t> units;
  double idle = 0;  // idle_share()
};
Balance balance_of(const std::vector<std::uint64_t>& bytes, std::size_t processes);

}  // namespace msprobe
