// SPDX-License-Identifier: Apache-2.0
// A sum in halves of halves, in NumPy's order, of elements that come in pieces. In float it has the same bits
// as NumPy's sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace msprobe::precheck {

template <typename T>
class PairwiseSum {
 public:
  /// A sum of at most 128 elements.
  using LeafSum = T (*)(const T* x, std::size_t n);

  PairwiseSum(std::uint64_t count, LeafSum leaf_sum) : leaf_sum_(leaf_sum) { descend(count); }

  /// Adds elements; all calls together add no more than `count`.
  void add(const T* from, std::size_t n) {
    while (n > 0) {
      const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(n, leaf_ - held_));
      if (held_ == 0 && taken == leaf_) {
        finish_leaf(from);
      } else {
        std::copy_n(from, taken, buffer_.begin() + static_cast<std::ptrdiff_t>(held_));
        held_ += taken;
        if (held_ == leaf_) finish_leaf(buffer_.data());
      }
      from += taken;
      n -= taken;
    }
  }
  /// The sum of all elements, once all were added; 0 if `count` is 0.
  T total() const { return total_; }

 private:
  static constexpr std::size_t kLeaf = 128;
  static constexpr std::size_t kColumns = 8;
  struct Half {
    std::uint64_t rest;  // elements of the second one
    bool first_done;
    T first;
  };

  void descend(std::uint64_t count) {
    while (count > kLeaf) {
      std::uint64_t first = count / 2;
      first -= first % kColumns;
      halves_[depth_++] = {count - first, false, T{}};
      count = first;
    }
    leaf_ = count;
    held_ = 0;
  }

  void finish_leaf(const T* x) {
    T value = leaf_sum_(x, static_cast<std::size_t>(leaf_));
    while (depth_ > 0) {
      Half& top = halves_[depth_ - 1];
      if (!top.first_done) {
        top.first_done = true;
        top.first = value;
        descend(top.rest);
        return;
      }
      value = top.first + value;
      --depth_;
    }
    total_ = value;
    leaf_ = held_ = 0;
  }

  LeafSum leaf_sum_;
  std::array<Half, 64> halves_;
  std::size_t depth_ = 0;
  std::array<T, kLeaf> buffer_;
  std::uint64_t leaf_ = 0;
  std::uint64_t held_ = 0;
  T total_{};
};

}  // namespace msprobe::precheck
