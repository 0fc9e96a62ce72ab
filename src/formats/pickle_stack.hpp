// SPDX-License-Identifier: Apache-2.0
// The two stores of a pickle reader: the stack with its marks, and the memo.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "formats/pickle.hpp"
#include "formats/pickle_stream.hpp"

namespace msprobe::formats {

/// Values below the last mark are out of reach until the mark is removed. Every misuse is a FormatError of
/// the stream.
class PickleStack {
 public:
  PickleStack(const PickleStream& stream, std::uint64_t max_size) : stream_(stream), max_size_(max_size) {}

  void push(PickleRef ref);
  PickleRef top() const;
  PickleRef pop();
  /// The last values; they stay on the stack.
  std::span<const PickleRef> last(std::size_t count) const;
  void drop(std::size_t count) { values_.resize(values_.size() - last(count).size()); }

  void mark() {
    marks_.push_back(values_.size());
    most_marks_ = std::max<std::uint64_t>(most_marks_, marks_.size());
  }
  /// POP: the last value, or the last mark if nothing is above it.
  void pop_value_or_mark();
  std::span<const PickleRef> since_mark() const;
  /// The value directly below the last mark: the container that receives the values above the mark.
  PickleRef below_mark() const;
  void drop_to_mark();

  void clear() {
    values_.clear();
    marks_.clear();
  }
  /// The only value left, at the end.
  PickleRef result() const;
  /// An upper bound in bytes for the largest content so far, with room to grow.
  std::uint64_t memory() const {
    return 2 * (most_values_ * sizeof(PickleRef) + most_marks_ * sizeof(std::size_t));
  }

 private:
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  const PickleStream& stream_;
  std::uint64_t max_size_;
  std::vector<PickleRef> values_;
  std::vector<std::size_t> marks_;
  std::uint64_t most_values_ = 0;
  std::uint64_t most_marks_ = 0;
};

/// Python numbers entries consecutively. Numbers out of that order go to an ordered map, so that no choice of
/// keys makes the memo slow.
class PickleMemo {
 public:
  explicit PickleMemo(const PickleStream& stream) : stream_(stream) {}

  void put(std::uint64_t key, PickleRef ref);
  void append(PickleRef ref) { put(dense_.size() + sparse_.size(), ref); }
  PickleRef get(std::uint64_t key) const;
  /// An upper bound in bytes for the content, with room to grow.
  std::uint64_t memory() const {
    constexpr std::uint64_t kSparseEntry = 56;
    return 2 * dense_.size() * sizeof(PickleRef) + sparse_.size() * kSparseEntry;
  }

 private:
  const PickleStream& stream_;
  std::vector<PickleRef> dense_;
  std::map<std::uint64_t, PickleRef> sparse_;
};

}  // namespace msprobe::formats
