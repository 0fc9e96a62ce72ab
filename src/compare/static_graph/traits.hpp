// SPDX-License-Identifier: Apache-2.0
// What can be otherwise with static graphs, for the sake of the Python tool; the defaults are our way.
#pragma once

#include <string_view>

namespace msprobe::compare {

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

}  // namespace msprobe::compare
