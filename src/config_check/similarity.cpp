// SPDX-License-Identifier: Apache-2.0
#include "config_check/similarity.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
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

class Matcher {
 public:
  Matcher(const std::u32string& a, const std::u32string& b) : a_(a), b_(b) {
    for (std::size_t j = 0; j < b_.size(); ++j) places_[b_[j]].push_back(j);
    // In a long text what occurs often starts no block.
    constexpr std::size_t kLong = 200;
    if (b_.size() < kLong) return;
    const std::size_t often = b_.size() / 100 + 1;
    std::erase_if(places_, [&](const auto& each) { return each.second.size() > often; });
  }

  std::size_t matches() {
    std::size_t total = 0;
    std::vector<Range> todo = {{0, a_.size(), 0, b_.size()}};
    while (!todo.empty()) {
      const Range range = todo.back();
      todo.pop_back();
      const Block block = longest(range);
      if (block.size == 0) continue;
      total += block.size;
      todo.push_back({range.a_begin, block.a, range.b_begin, block.b});
      todo.push_back({block.a + block.size, range.a_end, block.b + block.size, range.b_end});
    }
    return total;
  }

 private:
  struct Range {
    std::size_t a_begin, a_end, b_begin, b_end;
  };
  struct Block {
    std::size_t a = 0, b = 0, size = 0;
  };

  Block longest(const Range& range) {
    Block best{range.a_begin, range.b_begin, 0};
    // lengths[j + 1]: how long a block ends at a[i] and b[j].
    std::vector<std::size_t> lengths(b_.size() + 1, 0);
    std::vector<std::size_t> touched;
    for (std::size_t i = range.a_begin; i < range.a_end; ++i) {
      std::vector<std::pair<std::size_t, std::size_t>> now;
      if (const auto found = places_.find(a_[i]); found != places_.end()) {
        const auto first = std::lower_bound(found->second.begin(), found->second.end(), range.b_begin);
        for (auto at = first; at != found->second.end() && *at < range.b_end; ++at) {
          const std::size_t size = lengths[*at] + 1;
          now.emplace_back(*at, size);
          if (size > best.size) best = {i + 1 - size, *at + 1 - size, size};
        }
      }
      for (const std::size_t j : touched) lengths[j] = 0;
      touched.clear();
      for (const auto& [j, size] : now) {
        lengths[j + 1] = size;
        touched.push_back(j + 1);
      }
    }
    // What starts no block may still make one longer.
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
  std::unordered_map<char32_t, std::vector<std::size_t>> places_;
};

}  // namespace

double similarity(std::string_view a, std::string_view b) {
  if (a.size() > kMostCompared || b.size() > kMostCompared) return a == b ? 1 : 0;
  const std::u32string left = characters(a);
  const std::u32string right = characters(b);
  return ratio(Matcher(left, right).matches(), left.size() + right.size());
}

double similarity_bound(std::string_view a, std::string_view b) {
  if (a.size() > kMostCompared || b.size() > kMostCompared) return a == b ? 1 : 0;
  // Of bytes, not characters: for other than ASCII text no bound, so none is claimed.
  std::array<std::int32_t, 128> left{};
  for (const char c : a) {
    if ((c & 0x80) != 0) return 1;
    ++left[static_cast<std::size_t>(c)];
  }
  std::size_t shared = 0;
  for (const char c : b) {
    if ((c & 0x80) != 0) return 1;
    if (left[static_cast<std::size_t>(c)]-- > 0) ++shared;
  }
  return ratio(shared, a.size() + b.size());
}

}  // namespace msprobe::config_check
