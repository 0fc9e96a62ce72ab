// SPDX-License-Identifier: Apache-2.0
#include "verdict/traits.hpp"

namespace msprobe::verdict {

RankTraits python_rank_traits() {
  RankTraits traits;
  traits.measure = {
      .compares_spelling = true,        // D15
      .integers_as_double = true,       // D13
      .scalars_in_own_type = true,      // D10
      .real_parts_only = true,          // D11
      .infinities_without_sign = true,  // D12
      .positions_without_count = true,  // D14
      .files_by_framework = true,       // D18
  };
  traits.judge = {
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
      .tells_unknown = false,               // D106
      .sums_as_recorded = true,             // D105
      .xors_as_written = true,              // D103
      .tells_remarks = false,               // D1, D3
      .ratio_in_words = 0.6,                // D5
  };
  return traits;
}

}  // namespace msprobe::verdict
