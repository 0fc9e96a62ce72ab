// SPDX-License-Identifier: Apache-2.0
#include "compare/dialect.hpp"

namespace msprobe::compare {

// Behind each trait stands the item of docs/differences.md that gives the reason why ours is another.
Dialect python_dialect() {
  Dialect python;
  python.ignores_idle_options = true;  // D28
  python.rank = python_rank_traits();
  python.graph = {
      .absent = "",                      // D60
      .absent_shape_of_array = "None",   // D60
      .absent_shape_of_summary = "nan",  // D60
      .absent_as_mismatch = true,        // D60
      .blank_nan = true,                 // D61
      .in_float32 = true,                // D61, D65
      .magnitude_with_sign = true,       // D62
      .one_sided_nan_passes = true,      // D62
      .scalars_left_out = true,          // D63
      .message_lines = true,             // D64
  };
  python.saved = {
      .nan_differs = true,           // D67
      .nonfinite_by_formula = true,  // D67
      .blank_nan = true,             // D67
      .unreadable_left_out = true,   // D67
      .message_column = false,       // D67
  };
  python.atb = {
      .last_of_repeated = true,  // D68
      .message_column = false,   // D68
  };
  return python;
}

}  // namespace msprobe::compare
