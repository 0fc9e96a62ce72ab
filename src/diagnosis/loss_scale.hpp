// SPDX-License-Identifier: Apache-2.0
// A loss that is multiplied before the backward, so that small gradients do not become zero in float16, and
// gradients that are divided again before the optimizer takes them: the factors of the two runs differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::diagnosis {

struct LossScale {
  double factor = 1;  // factor by which gradients are larger in this run
  double target = 0;  // the scales, from the recorder or from the text of the program; 0: not known
  double golden = 0;
  /// The entry of the target where gradients first overflow, if they do in one run, whose optimizer then
  /// makes no step.
  std::uint32_t overflow = pairing::kNone;
  bool skips = false;                 // this run skips the step
  std::uint32_t first_backward = 0;   // entry under test
  std::uint32_t behind_backward = 0;  // first entry after the last backward

  /// Whether the scale may affect an entry: all entries from the first backward on, and forward calls whose
  /// output is a single number, which may be the loss.
  bool reaches(const dump::Side& side, std::uint32_t api) const;
  /// Whether a number of this run is golden's times the scale or its inverse, to a relative `tolerance`.
  bool explains(double ours, double theirs, double tolerance) const;
};

/// Known from what the collector wrote of the scalers, or seen in the gradients: the first ones of the
/// backward have one factor, which products of the loss explain, or which what the optimizer takes has not.
/// `golden_item`: by item of the target, or kNone.
std::optional<LossScale> loss_scale(const dump::Side& target, const dump::Side& golden,
                                    const pairing::Alignment& alignment,
                                    const std::vector<std::uint32_t>& golden_item);

}  // namespace msprobe::diagnosis
