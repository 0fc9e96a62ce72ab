// SPDX-License-Identifier: Apache-2.0
// What can be otherwise in measuring, for the sake of the Python tool; the defaults are our way.
#pragma once

#include "measuring/imports.hpp"

namespace msprobe::measuring {

struct MeasureTraits {
  bool compares_spelling = false;        // statistics: equal numbers of other spelling (0.0, -0.0) differ
  bool integers_as_double = false;       // 2^53 + 1 is 2^53, in statistics and in tensors of 64 bits
  bool scalars_in_own_type = false;      // 0-d tensors wrap around, their relative errors are float32
  bool real_parts_only = false;          // of complex tensors
  bool infinities_without_sign = false;  // +Inf and -Inf at one place are equal
  bool positions_without_count = false;  // NaN or Inf at other places: no word on how many
  bool files_by_framework = false;       // only .pt of PyTorch and .npy of MindSpore are read
  bool numbers_only = false;             // statistics: no difference but between numbers, no x / 0
};

}  // namespace msprobe::measuring
