// SPDX-License-Identifier: Apache-2.0
// The findings of rules about a row. Sentences are made from them only when they are shown.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace msprobe::verdict {

enum class Verdict : std::uint8_t { pass, warning, error };
std::string_view verdict_name(Verdict verdict);

/// The rules in the order in which a row lists them; the numbers are those of docs/rules.md, "Verdicts".
enum class RowRule : std::uint8_t {
  fuzzy_pair,     // the partner has another name (-fm)
  aligned_pair,   // the same, if both do the same at the same place
  content_pair,   // the same, for two code bases
  unknown,        // only one side has a certain statistic
  remark,         // the metrics come with a remark on their computation
  not_measured,   // the tensors could not be compared
  not_joined,     // the parts of the ranks cannot be merged to match golden
  copies_differ,  // between ranks that should hold the same
  target_missing,
  entry_missing,    // the golden side has no such entry
  item_missing,     // it has the entry, but not this input or output
  other_code,       // for two code bases: the golden side has no such content
  dtype_unpaired,   // the partner's dtype cannot be compared with this one
  non_finite,       // 1
  ratio_drop,       // 2
  norm_error,       // 3
  requires_grad,    // 4
  scalar_argument,  // 5
  dtype,            // 6
  shape,            // 7, 10
  norm_growth,      // 8
  cosine_drop,      // 9
  checksum,
  checksum_missing,  // on one side
  no_checksum,       // on both
  left_out,          // comes after the entry where the comparison stopped
};

constexpr Verdict verdict_of(RowRule rule) {
  using enum RowRule;
  constexpr std::array kWarnings = {not_measured, not_joined,       target_missing, entry_missing,
                                    item_missing, other_code,       dtype_unpaired, norm_growth,
                                    cosine_drop,  checksum_missing, no_checksum,    left_out};
  if (rule <= remark) return Verdict::pass;
  return std::ranges::find(kWarnings, rule) == kWarnings.end() ? Verdict::error : Verdict::warning;
}

/// The rules that apply to one row. Their numbers come from the row and the thresholds.
class Findings {
 public:
  void add(RowRule rule) { bits_ |= bit(rule); }
  bool has(RowRule rule) const { return (bits_ & bit(rule)) != 0; }
  bool empty() const { return bits_ == 0; }
  template <typename Visit>
  void each(Visit&& visit) const {
    for (std::uint32_t rest = bits_; rest != 0; rest &= rest - 1) {
      visit(static_cast<RowRule>(std::countr_zero(rest)));
    }
  }
  Verdict verdict() const {
    Verdict worst = Verdict::pass;
    each([&](RowRule rule) { worst = std::max(worst, verdict_of(rule)); });
    return worst;
  }

 private:
  static constexpr std::uint32_t bit(RowRule rule) { return std::uint32_t{1} << static_cast<unsigned>(rule); }

  std::uint32_t bits_ = 0;
};

}  // namespace msprobe::verdict
