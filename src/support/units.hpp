// SPDX-License-Identifier: Apache-2.0
// Distributes units of work to the processes of a job: the largest first, to the next free process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace msprobe {

class UnitQueue {
 public:
  /// `bytes`: the size that each unit reads. `processes`: the number of processes that share them. `able`:
  /// the processes that can compute each unit; empty: all can.
  UnitQueue(const std::vector<std::uint64_t>& bytes, std::size_t processes,
            const std::vector<std::vector<std::uint32_t>>& able = {});

  std::size_t left() const { return order_.size(); }
  /// The next unit for a process that already has `busy` units; while many more small units are left, several
  /// together. Empty if no unit is left for it, or if the rest is reserved for processes without work.
  std::vector<std::size_t> take(std::size_t process, std::size_t busy);
  /// A unit that only processes in `gone` could compute, if any.
  std::optional<std::size_t> stuck_without(const std::vector<bool>& gone) const;
  /// Gives no more units to any process.
  void close() { order_.clear(); }

 private:
  bool can(std::uint32_t process, std::size_t unit) const;

  std::vector<std::uint64_t> bytes_;
  std::vector<std::vector<std::uint32_t>> able_;
  std::deque<std::size_t> order_;  // the largest first
  std::size_t processes_;
};

/// The numbers of the units, the largest first.
std::vector<std::size_t> largest_first(const std::vector<std::uint64_t>& bytes);

/// The common elements of two ascending lists.
std::vector<std::uint32_t> processes_in_both(const std::vector<std::uint32_t>& a,
                                             const std::vector<std::uint32_t>& b);

/// The share of all processes' time that is spent waiting for the last one, which took `last` for its part of
/// `sum`.
double idle_share(double last, double sum, std::size_t processes);

/// The distribution of units to processes that are equally fast and take one unit after the other.
struct Balance {
  std::vector<std::uint64_t> bytes;  // by process
  std::vector<std::size_t> units;
  double idle = 0;  // idle_share()
};
Balance balance_of(const std::vector<std::uint64_t>& bytes, std::size_t processes);

}  // namespace msprobe
