// SPDX-License-Identifier: Apache-2.0
// What can be otherwise in the search for the first difference, for the sake of the Python tool; the defaults
// are our way.
#pragma once

namespace msprobe::compare {

struct SearchTraits {
  bool finite_percentages_only = false;  // a reference of 0, NaN or Inf never makes a difference
  bool absent_checksums_count = false;   // as any other text
  bool guesses_partners = false;         // from rows and names; the first groups that differ decide
  bool transfers_by_index = false;       // the reference's are those of the row of the same number
  bool bare_nan = false;                 // in JSON: as message of checksums, and where there is no such row
};

}  // namespace msprobe::compare
