// SPDX-License-Identifier: Apache-2.0
// What can be otherwise in pairing, for the sake of the Python tool; the defaults are our way.
#pragma once

namespace msprobe::compare {

struct PairingTraits {
  bool pairs_by_name = false;          // even where the entries of both sides are not the same ones
  bool ranks_by_position = false;      // even where both sides have numbers in common
  bool first_mapping_wins = false;     // of several, which are refused otherwise
  bool renumbers_golden_only = false;  // backward calls; mapped names are looked up among the new ones
  bool maps_target_only = false;       // -am and -cm leave the golden side's names as they are
  bool first_cell_anywhere = false;    // -cm: the first `Cell` of a name, wherever it is, becomes `Module`
  bool repeats_module = false;         // -lm: names of parameter gradients with a number have theirs twice
  bool fuzzy_by_row_name = false;      // -fm: what stands before the direction goes, not the call number
  bool fuzzy_drops_surplus = false;    // -fm: no rows behind the golden side's end, but for statistics
  bool fuzzy_loses_partners = false;   // -fm: statistics lose their partners, checksums their values
  bool dtypes_by_framework = false;    // types pair by class if the headers name two frameworks
  bool first_class_by_part = false;    // --consistent_check: a part of the first class' name is enough
  bool refuses_conflict = false;       // --consistent_check: orders that contradict each other are an error
};

}  // namespace msprobe::compare
