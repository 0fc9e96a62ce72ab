// SPDX-License-Identifier: Apache-2.0
// A loss that is multiplied ahead of the backward, so that small gradients keep out of the zeros of float16,
// and gradients that are divided again before the optimizer takes them: by other factors in the two runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/imports.hpp"
#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::diagnosis {

struct LossScale {
  double factor = 1;  // by which gradients are larger in this run
  double target = 0;  // the scales, as the recorder wrote them or as they stand in the program; 0: not known
  double golden = 0;
  /// In one run gradients overflow, and the optimizer makes no step: the entry under test where they do
  /// first.
  std::uint32_t overflow = kNone;
  bool skips = false;                 // this run
  std::uint32_t first_backward = 0;   // entry under test
  std::uint32_t behind_backward = 0;  // the first behind the last one

  /// The backward, what comes behind it, and the products ahead of it that make the loss: numbers.
  bool reaches(const dump::Side& side, std::uint32_t api) const;
  /// Is a number of this run that of golden, but for the scale or its inverse? No more than `tolerance`
  /// apart, relatively.
  bool explains(double ours, double theirs, double tolerance) const;
};

/// Known from what the collector wrote of the scalers, or seen in the gradients: the first ones of the
/// backward have one factor, which products of the loss explain, or which what the optimizer takes has not.
/// `golden_item`: by item of the target, or kNone.
std::optional<LossScale> loss_scale(const dump::Side& target, const dump::Side& golden,
                                    const Alignment& alignment,
                                    const std::vector<std::uint32_t>& golden_item);

}  // namespace msprobe::diagnosis
