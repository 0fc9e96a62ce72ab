// SPDX-License-Identifier: Apache-2.0
// Structures whose facts are right, but for those that an input changes: names, counts, places, numbers,
// where a file ends. Mutated bytes of a whole structure hardly come past its first check; one wrong fact
// does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

/// An input: a byte for each choice of what the structure is like, and four for each change: which fact (two,
/// counted from 0 in the order in which the target tells them), how, and with what.
class Facts {
 public:
  static constexpr std::size_t kMostChanges = 16;

  /// `choices`: how many there are. `facts`: of which a change may be.
  Facts(const std::uint8_t* data, std::size_t size, std::size_t choices, std::size_t facts) {
    const std::span<const std::uint8_t> input(data, size);
    choices_.assign(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(std::min(choices, size)));
    for (std::size_t at = choices; at + 4 <= size && changes_.size() < kMostChanges; at += 4) {
      const auto fact = static_cast<std::size_t>(input[at] | input[at + 1] << 8);
      changes_.push_back({fact % facts, input[at + 2], input[at + 3]});
    }
  }

  /// The next choice, a number below `limit`; 0 where the input has ended.
  std::size_t choose(std::size_t limit) { return next_ < choices_.size() ? choices_[next_++] % limit : 0; }
  /// Is everything as it should be? Known after the last fact.
  bool all_right() const { return !changed_; }

  std::int64_t number(std::int64_t right) {
    constexpr std::array<std::int64_t, 14> kEdges = {0,
                                                     1,
                                                     2,
                                                     -1,
                                                     -2,
                                                     0x7f,
                                                     0xff,
                                                     0x7fff,
                                                     0xffff,
                                                     0x7fffffff,
                                                     0x80000000,
                                                     0xffffffff,
                                                     std::int64_t{1} << 62,
                                                     std::numeric_limits<std::int64_t>::max()};
    return change(right, [&](std::uint8_t how, std::uint8_t with) -> std::int64_t {
      switch (how % 6) {
        case 0:
          return kEdges[with % kEdges.size()];
        case 1:
          return with;
        case 2:
          return static_cast<std::int64_t>(static_cast<std::uint64_t>(right) + with % 4 + 1);
        case 3:
          return static_cast<std::int64_t>(static_cast<std::uint64_t>(right) - with % 4 - 1);
        case 4:
          return static_cast<std::int64_t>(static_cast<std::uint64_t>(right) << with % 64);
        default:
          return static_cast<std::int64_t>(~static_cast<std::uint64_t>(right) + 1);
      }
    });
  }

  /// How often something is there.
  std::size_t count(std::size_t right) {
    return change(right, [&](std::uint8_t how, std::uint8_t with) -> std::size_t {
      return how % 3 == 0 ? 0 : how % 3 == 1 ? right + 1 : with % (right + 1);
    });
  }

  bool flag(bool right) {
    return change(right, [&](std::uint8_t, std::uint8_t) { return !right; });
  }

  /// A name, or what refers to one: changed it may be another of those told before.
  std::string text(std::string right) {
    std::string told =
        change(right, [&](std::uint8_t how, std::uint8_t with) { return other_text(right, how, with); });
    if (texts_.size() < kMostTexts) texts_.push_back(std::move(right));
    return told;
  }

  /// The contents of a file: cut, with another byte, or with more bytes at its end.
  std::string content(std::string right) {
    return change(right, [&](std::uint8_t how, std::uint8_t with) {
      std::string wrong = right;
      const std::size_t at = right.size() * with / 256;
      switch (how % 4) {
        case 0:
          wrong.resize(at);
          break;
        case 1:
          if (!wrong.empty()) wrong[at] = static_cast<char>(wrong[at] ^ (1 << how / 4 % 8));
          break;
        case 2:
          wrong.insert(at, right.substr(0, how));
          break;
        default:
          wrong.erase(at, how);
      }
      return wrong;
    });
  }

  /// A value of JSON, as its text.
  std::string json(std::string right) {
    constexpr std::array<std::string_view, 20> kOthers = {"null",
                                                          "true",
                                                          "0",
                                                          "-1",
                                                          "NaN",
                                                          "Infinity",
                                                          "-Infinity",
                                                          "1e999",
                                                          "1e-999",
                                                          "-0.0",
                                                          "\"\"",
                                                          "\"x\"",
                                                          "[]",
                                                          "{}",
                                                          "[[]]",
                                                          "2.5e300",
                                                          "\"nan\"",
                                                          "[1]",
                                                          "9223372036854775808",
                                                          "{\"a\":{}}"};
    return change(right, [&](std::uint8_t how, std::uint8_t with) -> std::string {
      if (how % 3 == 0) return "[" + right + "," + right + "]";
      return std::string(kOthers[with % kOthers.size()]);
    });
  }

 private:
  static constexpr std::size_t kMostTexts = 512;

  struct Change {
    std::size_t fact;
    std::uint8_t how;
    std::uint8_t with;
  };

  template <typename T, typename Other>
  T change(const T& right, const Other& other) {
    const std::size_t fact = facts_++;
    for (const Change& each : changes_) {
      if (each.fact != fact) continue;
      changed_ = true;
      return other(each.how, each.with);
    }
    return right;
  }

  std::string other_text(const std::string& right, std::uint8_t how, std::uint8_t with) const {
    constexpr std::array<std::string_view, 16> kOthers = {
        "",  ".",  "..",       "../x",    "/x",  "\xff\xfe", std::string_view("a\0b", 3), "\n", "\x1b[1m",
        "0", "-1", "\u00e9.x", "forward", "a/b", "Module.",  "99999999999999999999"};
    const std::size_t at = right.size() * with / 256;
    switch (how % 6) {
      case 0:
        return std::string(kOthers[with % kOthers.size()]);
      case 1:  // of one told before
        return texts_.empty() ? std::string() : texts_[texts_.size() - 1 - with % texts_.size()];
      case 2:
        return right.substr(0, at);
      case 3:
        return right.substr(at);
      case 4:
        return right + right.substr(at);
      default: {
        std::string wrong = right;
        if (!wrong.empty()) wrong[at] = static_cast<char>(wrong[at] ^ (1 << how / 6 % 8));
        return wrong;
      }
    }
  }

  std::vector<std::uint8_t> choices_;
  std::vector<Change> changes_;
  std::vector<std::string> texts_;
  std::size_t next_ = 0;
  std::size_t facts_ = 0;
  bool changed_ = false;
};

}  // namespace msprobe
