// SPDX-License-Identifier: Apache-2.0
// Finds NaN, infinities and jumps in a tensor from its recorded statistics. Max and Min are elements of the
// tensor; Mean and Norm are sums, which may leave the range of their type though every element is finite.
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

/// Reads the text of a statistic, in lower or upper case: `nan`, `inf`, `-inf`; `tab`: also with a tab after
/// it.
Bad bad_text(std::string_view text, bool tab);
/// The same for a value in an entry. A number that is too large for a double counts as infinite.
Bad bad_statistic(const Entry& entry, Entry::Index node, bool tab = true);

/// Max and Min of an object; nothing for anything else.
Bad bad_item(const Entry& entry, Entry::Index node, bool tab = true);

/// Whether `statistic`, which is `Mean` or `Norm`, shows that elements are NaN or infinite where Max and Min
/// do not. A value that is not finite shows nothing if sums of such elements may have left the range; with
/// `as_is` it counts nevertheless.
bool bad_sum(const Entry& entry, Entry::Index node, std::string_view statistic, bool as_is = false);

/// Whether the statistics of an object show that its tensor has NaN or infinities. `as_is`: as in bad_sum().
bool shows_bad(const Entry& entry, Entry::Index node, bool as_is);

/// A number as Python's json loads it; nothing for null, text and NaN.
std::optional<double> number_of(const Entry& entry, Entry::Index node);

/// Compares the largest norm of an entry's outputs with that of its inputs. Inputs must be added first.
class NormJump {
 public:
  /// `as_is`: norms that are infinite because of a sum count too, and so do the values of a mask.
  explicit NormJump(const Entry& entry, bool as_is) : entry_(entry), as_is_(as_is) {}

  void input(Entry::Index item);
  void output(Entry::Index item);
  /// Whether the largest element of this output is a number that an argument gives, as masks and fills do.
  bool is_given(Entry::Index item) const;

  struct JumpNorms {
    double input = 0;
    double output = 0;
    bool or_more = false;  // the output's norm could not be computed
  };
  std::optional<JumpNorms> above(double ratio) const;

 private:
  bool is_tensor(Entry::Index item) const;
  /// Whether an output is masked: an argument gives its largest element, or its smallest one is the lowest
  /// number of its type or a round number, and larger in size than the others. An overflow that was cut off
  /// has no reason to be either.
  bool is_masked(Entry::Index item) const;

  const Entry& entry_;
  bool as_is_;
  bool unknown_ = false;       // the size of an input is not known
  std::vector<double> given_;  // numbers among the arguments
  std::optional<double> input_;
  std::optional<double> output_;
  bool or_more_ = false;
};

}  // namespace msprobe::dump
