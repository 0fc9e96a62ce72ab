// SPDX-License-Identifier: Apache-2.0
#include "support/units.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <queue>
#include <utility>

namespace msprobe {
namespace {

// Asking for a unit takes as long as reading this many bytes; the largest units are far above it.
constexpr std::uint64_t kSmallUnits = std::uint64_t{1} << 20;
constexpr std::size_t kManyUnits = 16;  // units that are left, per process

}  // namespace

std::vector<std::size_t> largest_first(const std::vector<std::uint64_t>& bytes) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  return order;
}

UnitQueue::UnitQueue(const std::vector<std::uint64_t>& bytes, std::size_t processes,
                     const std::vector<std::vector<std::uint32_t>>& able)
    : bytes_(bytes), able_(able), processes_(processes) {
  for (const std::size_t unit : largest_first(bytes)) order_.push_back(unit);
}

bool UnitQueue::can(std::uint32_t process, std::size_t unit) const {
  if (able_.empty() || able_[unit].empty()) return true;
  return std::find(able_[unit].begin(), able_[unit].end(), process) != able_[unit].end();
}

std::vector<std::size_t> UnitQueue::take(std::size_t process, std::size_t busy) {
  std::vector<std::size_t> units;
  if (busy > 0 && left() < processes_) return units;
  std::uint64_t bytes = 0;
  do {
    const auto next = std::ranges::find_if(
        order_, [&](std::size_t unit) { return can(static_cast<std::uint32_t>(process), unit); });
    if (next == order_.end()) break;
    units.push_back(*next);
    bytes += bytes_[*next];
    order_.erase(next);
  } while (bytes < kSmallUnits && units.size() < kManyUnits && left() > kManyUnits * processes_);
  return units;
}

std::optional<std::size_t> UnitQueue::stuck_without(const std::vector<bool>& gone) const {
  for (const std::size_t unit : order_) {
    if (able_.empty() || able_[unit].empty()) continue;
    if (std::ranges::all_of(able_[unit], [&](std::uint32_t each) { return gone[each]; })) return unit;
  }
  return std::nullopt;
}

std::vector<std::uint32_t> processes_in_both(const std::vector<std::uint32_t>& a,
                                             const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

double idle_share(double last, double sum, std::size_t processes) {
  return last > 0 ? 1 - sum / (last * static_cast<double>(processes)) : 0;
}

Balance balance_of(const std::vector<std::uint64_t>& bytes, std::size_t processes) {
  Balance balance;
  balance.bytes.resize(processes);
  balance.units.resize(processes);
  UnitQueue queue(bytes, processes);
  using Free = std::pair<std::uint64_t, std::size_t>;  // the time, and the process
  std::priority_queue<Free, std::vector<Free>, std::greater<>> next;
  for (std::size_t i = 0; i < processes; ++i) next.emplace(0, i);
  while (queue.left() > 0) {
    const std::size_t process = next.top().second;
    next.pop();
    for (const std::size_t unit : queue.take(process, 0)) {
      balance.bytes[process] += bytes[unit];
      ++balance.units[process];
    }
    next.emplace(balance.bytes[process], process);
  }
  const std::uint64_t last = *std::ranges::max_element(balance.bytes);
  double sum = 0;
  for (const std::uint64_t each : balance.bytes) sum += static_cast<double>(each);
  balance.idle = idle_share(static_cast<double>(last), sum, processes);
  return balance;
}

}  // namespace msprobe
