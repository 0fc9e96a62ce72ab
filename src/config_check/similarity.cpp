// SPDX-License-Identifier: Apache-2.0
#include "config_check/similarity.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

std::u32string characters(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 c = utf8_at(text, i);
    out += c.code;
    i += c.length;
  }
  return out;
}

double ratio(std::size_t matches, std::size_t length) {
  return length == 0 ? 1.0 : 2.0 * static_cast<double>(matches) / static_cast<double>(length);
}

class SequenceMatcher {
 public:
  SequenceMatcher(const std::u32string& a, const std::u32string& b)
      : a_(a), b_(b), order_(b.size()), places_(a.size()), ends_(b.size() + 1), ended_(b.size() + 1) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_,
                      [&](std::size_t x, std::size_t y) { return b_[x] != b_[y] ? b_[x] < b_[y] : x < y; });
    // In a long text, frequent characters begin no block.
    constexpr std::size_t kLong = 200;
    const std::size_t often = b_.size() < kLong ? b_.size() : b_.size() / 100 + 1;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      const auto first = std::partition_point(order_.begin(), order_.end(),
                                              [&](std::size_t place) { return b_[place] < a_[i]; });
      const auto last =
          std::partition_point(first, order_.end(), [&](std::size_t place) { return b_[place] == a_[i]; });
      const Places places(first, last);
      if (places.size() <= often) places_[i] = places;
    }
  }

  std::size_t matches() {
    std::size_t total = 0;
    std::vector<OpenStretch> todo = {{0, a_.size(), 0, b_.size()}};
    while (!todo.empty()) {
      const OpenStretch range = todo.back();
      todo.pop_back();
      const CommonRun block = longest(range);
      if (block.size == 0) continue;
      total += block.size;
      todo.push_back({range.a_begin, block.a, range.b_begin, block.b});
      todo.push_back({block.a + block.size, range.a_end, block.b + block.size, range.b_end});
    }
    return total;
  }

 private:
  using Places = std::span<const std::size_t>;
  struct OpenStretch {
    std::size_t a_begin, a_end, b_begin, b_end;
  };
  struct CommonRun {
    std::size_t a = 0, b = 0, size = 0;
  };

  CommonRun longest(const OpenStretch& range) {
    CommonRun best{range.a_begin, range.b_begin, 0};
    Places before;  // the places where ended_ is not zero
    for (std::size_t i = range.a_begin; i < range.a_end; ++i) {
      const Places all = places_[i];
      const auto first = std::lower_bound(all.begin(), all.end(), range.b_begin);
      const Places now(first, std::lower_bound(first, all.end(), range.b_end));
      for (const std::size_t j : now) {
        const std::size_t size = ended_[j] + 1;
        ends_[j + 1] = size;
        if (size > best.size) best = {i + 1 - size, j + 1 - size, size};
      }
      for (const std::size_t j : before) ended_[j + 1] = 0;
      ends_.swap(ended_);
      before = now;
    }
    for (const std::size_t j : before) ended_[j + 1] = 0;
    // Characters that begin no block may still extend one.
    while (best.a > range.a_begin && best.b > range.b_begin && a_[best.a - 1] == b_[best.b - 1])
      best = {best.a - 1, best.b - 1, best.size + 1};
    while (best.a + best.size < range.a_end && best.b + best.size < range.b_end &&
           a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
    return best;
  }

  const std::u32string& a_;
  const std::u32string& b_;
  std::vector<std::size_t> order_;  // places in b, by character
  std::vector<Places> places_;      // of each character of a in b, ascending
  // For each b[j], at j + 1: the length of the block that ends there and at the previous character of a; 0
  // between searches.
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> ended_;
};

/// An upper bound for the number of pairs of neighbouring characters that two texts have in common.
std::size_t shared_pairs(std::string_view a, std::string_view b) {
  std::array<std::int32_t, 256> left{};  // different pairs may share a place
  const auto place = [](std::string_view text, std::size_t i) {
    return static_cast<std::size_t>((text[i] * 37 + text[i + 1]) & 0xff);
  };
  for (std::size_t i = 0; i + 1 < a.size(); ++i) ++left[place(a, i)];
  std::size_t shared = 0;
  for (std::size_t i = 0; i + 1 < b.size(); ++i) {
    if (left[place(b, i)]-- > 0) ++shared;
  }
  return shared;
}

}  // namespace

double similarity(std::string_view a, std::string_view b) {
  if (a.size() > kMostCompared || b.size() > kMostCompared) return a == b ? 1 : 0;
  const std::u32string left = characters(a);
  const std::u32string right = characters(b);
  return ratio(SequenceMatcher(left, right).matches(), left.size() + right.size());
}

double similarity_bound(std::string_view a, std::string_view b) {
  if (a.size() > kMostCompared || b.size() > kMostCompared) return a == b ? 1 : 0;
  // Counting bytes gives a bound only for ASCII; for other texts the function returns 1.
  std::array<std::int32_t, 128> left{};
  for (const char c : a) {
    if ((c & 0x80) != 0) return 1;
    ++left[static_cast<unsigned char>(c)];
  }
  std::size_t shared = 0;
  for (const char c : b) {
    if ((c & 0x80) != 0) return 1;
    if (left[static_cast<unsigned char>(c)]-- > 0) ++shared;
  }
  // Two blocks are separated by at least one character of a or b that is in no block. So m matching
  // characters form at most a + b - 2 m + 1 blocks, and these have at least m minus that number of
  // neighbouring pairs in common: m <= (pairs + a + b + 1) / 3.
  shared = std::min(shared, (shared_pairs(a, b) + a.size() + b.size() + 1) / 3);
  return ratio(shared, a.size() + b.size());
}

}  // namespace msprobe::config_check
