// SPDX-License-Identifier: Apache-2.0
#include "compare/dialect.hpp"

namespace msprobe::compare {

// Behind each trait stands the item of docs/differences.md that gives the reason why ours is another.
Dialect python_dialect() {
  Dialect python;
  python.ignores_idle_options = true;  // D28, D84
  python.rank.pairing = {
      .pairs_by_name = true,          // D98
      .ranks_by_position = true,      // D21
      .first_mapping_wins = true,     // D45
      .renumbers_golden_only = true,  // D41
      .maps_target_only = true,       // D46
      .first_cell_anywhere = true,    // D46
      .repeats_module = true,         // D43
      .fuzzy_by_row_name = true,      // D42
      .fuzzy_drops_surplus = true,    // D42
      .fuzzy_loses_partners = true,   // D42
      .dtypes_by_framework = true,    // D47
      .first_class_by_part = true,    // D71
      .refuses_conflict = true,       // D71
  };
  python.rank.measure = {
      .compares_spelling = true,        // D15
      .integers_as_double = true,       // D13
      .scalars_in_own_type = true,      // D10
      .real_parts_only = true,          // D11
      .infinities_without_sign = true,  // D12
      .positions_without_count = true,  // D14
  };
  python.rank.judge = {
      .tells_unmatched = false,             // D2
      .saved_values_are_inputs = false,     // D66
      .consistent_statistics = false,       // D72
      .exempts_by_first_input = true,       // D9
      .marks_first_output = true,           // D7
      .finite_growth_only = true,           // D8
      .grad_needs_both_frameworks = false,  // D58
      .fused_dtypes_pass = true,            // D6
      .dtypes_by_spelling = true,           // D4
      .tensors_need_checksums = false,      // D16
      .tells_remarks = false,               // D1, D3
      .ratio_in_words = 0.6,                // D5
      .files_by_framework = true,           // D18
  };
  python.search = {
      .finite_percentages_only = true,  // D80
      .absent_checksums_count = true,   // D16
      .guesses_partners = true,         // D81, D82
      .transfers_by_index = true,       // D86
      .bare_nan = true,                 // D86
  };
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
