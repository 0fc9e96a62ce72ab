// SPDX-License-Identifier: Apache-2.0
// How much of the requested comparison a command did. Status 0 at a gate, "no culprit" and "everywhere" are
// printed for this share only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

struct Coverage {
  /// The reason why a part was not compared.
  struct Gap {
    std::string reason;  // "no statistic is a number on both sides"
    std::string first;   // the name of the first one
    std::uint64_t count = 0;
  };

  std::uint64_t compared = 0;
  /// These hold nothing to compare, or another comparison already covers them.
  std::uint64_t explained = 0;
  std::vector<Gap> gaps;  // one per reason, in the order of their first use

  /// Counts `count` items that were not compared.
  void miss(std::string_view reason, std::string_view name, std::uint64_t count = 1);
  void add(const Coverage& other);

  std::uint64_t missed() const;
  std::uint64_t asked() const { return compared + explained + missed(); }
  /// The compared part of what could be compared; 0 if there was nothing.
  double share() const;
  bool is_complete() const { return compared > 0 && gaps.empty(); }
  /// The share as text: "19 %", "0.02 %". It is rounded down, so that only a complete comparison gives 100 %.
  std::string percent() const;
  /// "797 of 982 tensors were not compared: no statistic is a number on both sides, first
  /// Tensor.add.0.forward.input.0". `unit`: "tensors". Empty if the comparison is complete.
  std::string text(std::string_view unit) const;
};

void carry(auto& packet, auto& gap) requires requires {
  gap.reason, gap.first, gap.count;
}
{ packet(gap.reason, gap.first, gap.count); }

void carry(auto& packet, auto& coverage) requires requires {
  coverage.compared, coverage.explained, coverage.gaps;
}
{ packet(coverage.compared, coverage.explained, coverage.gaps); }

}  // namespace msprobe
