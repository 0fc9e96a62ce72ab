// SPDX-License-Identifier: Apache-2.0
#include "pairing/join.hpp"

#include <algorithm>

namespace msprobe::pairing {
namespace {

constexpr std::uint32_t kNoNumber = UINT32_MAX;

/// The waiting rows of one side, and those of each key in order.
/// A pair always has the newest row of one side, so it empties that queue; rows that wait on both sides were
/// compared with each other when they came. So one look among the other side's rows of the same key finds the
/// partner that trying all rows would find.
class Queue {
 public:
  Queue(const std::vector<std::uint32_t>& keys, std::size_t key_count)
      : keys_(keys),
        first_(key_count, kNoNumber),
        last_(key_count, kNoNumber),
        next_(keys.size(), kNoNumber) {}

  bool read_next() {
    if (end_ == keys_.size()) return false;
    const std::uint32_t key = keys_[end_];
    if (key != kNoKey) {
      if (first_[key] == kNoNumber) {
        first_[key] = end_;
      } else {
        next_[last_[key]] = end_;
      }
      last_[key] = end_;
    }
    ++end_;
    return true;
  }

  bool empty() const { return begin_ == end_; }
  std::uint32_t begin() const { return begin_; }
  std::uint32_t end() const { return end_; }
  std::uint32_t newest_key() const { return keys_[end_ - 1]; }

  /// The oldest waiting row of a key.
  std::uint32_t oldest(std::uint32_t key) {
    if (key == kNoKey) return kNoNumber;
    std::uint32_t& first = first_[key];
    while (first != kNoNumber && first < begin_) first = next_[first];
    return first;
  }

  void cut_behind(std::uint32_t row) { begin_ = row + 1; }

 private:
  const std::vector<std::uint32_t>& keys_;
  std::vector<std::uint32_t> first_;  // by key
  std::vector<std::uint32_t> last_;
  std::vector<std::uint32_t> next_;  // by row: the next one of its key
  std::uint32_t begin_ = 0;
  std::uint32_t end_ = 0;
};

std::size_t count_keys(const std::vector<std::uint32_t>& keys) {
  std::size_t count = 0;
  for (const std::uint32_t key : keys) {
    if (key != kNoKey) count = std::max<std::size_t>(count, std::size_t{key} + 1);
  }
  return count;
}

}  // namespace

std::vector<Pair> pair_in_step(const std::vector<std::uint32_t>& target_keys,
                               const std::vector<std::uint32_t>& golden_keys) {
  const std::size_t key_count = std::max(count_keys(target_keys), count_keys(golden_keys));
  Queue target(target_keys, key_count);
  Queue golden(golden_keys, key_count);
  std::vector<Pair> pairs;
  pairs.reserve(target_keys.size());
  const auto unmatched_until = [&](std::size_t end) {
    for (std::size_t row = target.begin(); row < end; ++row)
      pairs.push_back({static_cast<std::uint32_t>(row), kUnmatched, Unmatched::entry_missing, kUnmatched});
  };
  for (;;) {
    const bool more_target = target.read_next();
    const bool more_golden = golden.read_next();
    // Nothing is left, or nothing waits on the side that has ended.
    if ((!more_target && !more_golden) || target.empty() || golden.empty()) break;
    std::uint32_t t = target.end() - 1;
    std::uint32_t g = golden.oldest(target.newest_key());
    if (g == kNoNumber) {
      g = golden.end() - 1;
      t = target.oldest(golden.newest_key());
      if (t == kNoNumber) continue;
    }
    unmatched_until(t);
    pairs.push_back({t, g, Unmatched::no, kUnmatched});
    target.cut_behind(t);
    golden.cut_behind(g);
  }
  unmatched_until(target_keys.size());
  return pairs;
}

}  // namespace msprobe::pairing
