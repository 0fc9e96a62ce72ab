// SPDX-License-Identifier: Apache-2.0
#include "measuring/python_rules.hpp"

namespace msprobe::measuring {

PythonRules python_rules() {
  return {
      .compares_spelling = true,
      .integers_as_double = true,
      .scalars_in_own_type = true,
      .real_parts_only = true,
      .infinities_without_sign = true,
      .positions_without_count = true,
      .files_by_framework = true,
      .unmatched_pass = true,
      .outputs_by_name = true,
      .consistent_as_others = true,
      .exempts_by_first_input = true,
      .marks_first_output = true,
      .finite_growth_only = true,
      .grad_across_frameworks = true,
      .fused_dtypes_pass = true,
      .dtypes_by_spelling = true,
      .tensors_without_checksum = true,
      .unknown_pass = true,
      .sums_as_recorded = true,
      .xors_as_written = true,
      .remarks_pass = true,
      .ratio_in_words = 0.6,
  };
}

PythonRules python_node_rules() {
  PythonRules rules = python_rules();
  rules.numbers_only = true;
  rules.finite_growth_only = false;
  rules.null_says_nothing = true;
  rules.surplus_differs = true;
  return rules;
}

}  // namespace msprobe::measuring
