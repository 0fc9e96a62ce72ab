// SPDX-License-Identifier: Apache-2.0
// What recorded statistics say of NaN, infinities and jumps in a tensor. Max and Min are elements of it; Mean
// and Norm are sums, which may leave the range of their type though every element is finite.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"

namespace msprobe::dump {

/// kNan, kInf, both or neither.
using Bad = std::uint8_t;
inline constexpr Bad kNan = 1;
inline constexpr Bad kInf = 2;

/// What the text of a statistic says in any case: `nan`, `inf`, `-inf`; `tab`: also with a tab behind.
Bad bad_text(std::string_view text, bool tab);
/// The same of a value in an entry, with the numbers that are too large for a double.
Bad bad_statistic(const Entry& entry, Entry::Index node, bool tab = true);

/// Max and Min of an object; nothing for anything else.
Bad bad_item(const Entry& entry, Entry::Index node, bool tab = true);

/// Which of `Mean` and `Norm` says that elements are NaN or infinite, where Max and Min do not. One that is
/// itself not finite says nothing if sums of such elements may have left the range: `as_is` takes it
/// nevertheless.
bool bad_sum(const Entry& entry, Entry::Index node, std::string_view statistic, bool as_is = false);

/// Do the statistics of an object say that its tensor holds NaN or infinities? `as_is`: as in bad_sum().
bool shows_bad(const Entry& entry, Entry::Index node, bool as_is);

/// A number as Python's json loads it; nothing for null, text and NaN.
std::optional<double> number_of(const Entry& entry, Entry::Index node);

/// How much larger than its inputs an entry's outputs are, by the largest norms. Inputs go first.
class NormJump {
 public:
  /// `as_is`: norms count that are infinite because of a sum, and so do the values of a mask.
  explicit NormJump(const Entry& entry, bool as_is) : entry_(entry), as_is_(as_is) {}

  void input(Entry::Index item);
  void output(Entry::Index item);
  /// Is the largest element of this output a number that an argument gives, as masks and fills do?
  bool is_given(Entry::Index item) const;

  struct Norms {
    double input = 0;
    double output = 0;
    bool or_more = false;  // the output's could not be computed
  };
  std::optional<Norms> above(double ratio) const;

 private:
  bool is_tensor(Entry::Index item) const;
  /// Is it the lowest of its type, or a round number, while all others are smaller? An overflow that was cut
  /// off has no reason to be either.
  bool is_masked(Entry::Index item) const;

  const Entry& entry_;
  bool as_is_;
  bool unknown_ = false;       // an input is larger than can be told
  std::vector<double> given_;  // numbers among the arguments
  std::optional<double> input_;
  std::optional<double> output_;
  bool or_more_ = false;
};

}  // namespace msprobe::dump
