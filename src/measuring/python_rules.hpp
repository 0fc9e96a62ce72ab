// SPDX-License-Identifier: Apache-2.0
// `--python-rules`: values and verdicts as the Python tool 26.x gives them.
#pragma once

#include <optional>

namespace msprobe::measuring {

/// The places where the Python tool measures or judges differently. By default no member is set, and
/// msprobe's own rules apply. The numbers name the rows of docs/differences.
struct PythonRules {
  // Measuring.
  bool compares_spelling = false;        // D15: equal statistics with different spelling (0.0, -0.0) differ
  bool integers_as_double = false;       // D13: 2^53 + 1 is 2^53, in statistics and in tensors of 64 bits
  bool scalars_in_own_type = false;      // D10: 0-d tensors wrap around, their relative errors are float32
  bool real_parts_only = false;          // D11: the imaginary part of a complex tensor is not compared
  bool infinities_without_sign = false;  // D12: +Inf and -Inf at one place are equal
  bool positions_without_count = false;  // D14: the remark on NaN or Inf does not count the places
  bool files_by_framework = false;       // D18: PyTorch has .pt files only, MindSpore .npy files only
  // Verdicts.
  bool unmatched_pass = false;            // D2: a row without partner is no warning
  bool outputs_by_name = false;           // D66, D117: an item with `.output.` in its name is an output
  bool consistent_as_others = false;      // D72: --consistent_check has no special rules for statistics
  bool exempts_by_first_input = false;    // D9: the first input's name determines the operation
  bool marks_first_output = false;        // D7: the first output is marked, whichever one is bad
  bool finite_growth_only = false;        // D8: an infinite relative error counts as none among several
  bool grad_across_frameworks = false;    // D58: requires_grad that one framework does not record differs
  bool fused_dtypes_pass = false;         // D6: the dtypes of qkv and gate_up modules are not compared
  bool dtypes_by_spelling = false;        // D4: torch.float32 and Float32 differ
  bool tensors_without_checksum = false;  // D16: a tensor without checksum is no warning
  bool unknown_pass = false;              // D106: a statistic that only one side has is no warning
  bool sums_as_recorded = false;          // D105: norms count, regardless of the precision of their recorder
  bool xors_as_written = false;           // D103: checksums of any form are called CRC-32
  bool remarks_pass = false;              // D1, D3: a reason why a tensor cannot be compared is no finding
  std::optional<double> ratio_in_words = {};  // D5: the limit that the message of rule 2 names
  // Nodes of graph_visualize.
  bool numbers_only = false;       // statistics differ as numbers or not at all; nothing is divided by 0
  bool null_says_nothing = false;  // a requires_grad, dtype or shape of null equals any other
  bool surplus_differs = false;    // an item without partner differs in all its members
};

/// The rules of `compare --python-rules`.
PythonRules python_rules();
/// The rules of `graph_visualize --python-rules`.
PythonRules python_node_rules();

}  // namespace msprobe::measuring
