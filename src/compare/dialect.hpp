// SPDX-License-Identifier: Apache-2.0
// Whose results `msprobe compare` gives: what can be otherwise for the sake of the Python tool. The defaults
// are our way.
#pragma once

#include <string_view>

#include "compare/imports.hpp"
#include "verdict/traits.hpp"

namespace msprobe::compare {

/// With static graphs.
struct GraphTraits {
  std::string_view absent = "N/A";                   // a cell of what one side lacks
  std::string_view absent_shape_of_array = "N/A";    // its shape where .npy files are compared
  std::string_view absent_shape_of_summary = "N/A";  // and where statistics are
  bool absent_as_mismatch = false;                   // the message speaks of array, shape and dtype instead
  bool blank_nan = false;
  bool in_float32 = false;  // statistics: rounded first, NaN and Inf differ from themselves, x / 0 is N/A
  bool magnitude_with_sign = false;   // of what the difference of the maxima is a part
  bool one_sided_nan_passes = false;  // in minima, means and norms
  bool scalars_left_out = false;
  bool message_lines = false;  // each message ends with a line break
};

/// With single arrays.
struct SavedTraits {
  bool nan_differs = false;           // from itself
  bool nonfinite_by_formula = false;  // inf <= 0.01 * inf: an infinite error is small, NaN is none
  bool blank_nan = false;
  bool unreadable_left_out = false;
  bool message_column = true;
};

/// With dumps of ATB.
struct AtbTraits {
  bool last_of_repeated = false;  // of rows of one name only the last counts, at the place of the first
  bool message_column = true;
};

/// Ours, unless a trait is changed.
struct Dialect {
  bool ignores_idle_options = false;  // those that do not apply to the dumps, which are refused otherwise
  RankTraits rank;
  GraphTraits graph;
  SavedTraits saved;
  AtbTraits atb;
};

/// That of the Python tool 26.x: --python-rules.
Dialect python_dialect();

}  // namespace msprobe::compare
