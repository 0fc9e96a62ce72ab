// SPDX-License-Identifier: Apache-2.0
// What can be otherwise with single arrays, for the sake of the Python tool; the defaults are our way.
#pragma once

namespace msprobe::compare {

struct SavedTraits {
  bool nan_differs = false;           // from itself
  bool nonfinite_by_formula = false;  // inf <= 0.01 * inf: an infinite error is small, NaN is none
  bool blank_nan = false;
  bool unreadable_left_out = false;
  bool message_column = true;
};

}  // namespace msprobe::compare
