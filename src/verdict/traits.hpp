// SPDX-License-Identifier: Apache-2.0
// How rows are judged where the Python tool does it in another way; the defaults are ours. Numbers name the
// items of docs/differences.md.
#pragma once

#include <optional>

#include "measuring/traits.hpp"
#include "verdict/imports.hpp"

namespace msprobe::verdict {

struct JudgeTraits {
  bool tells_unmatched = true;             // rows without partner are warnings
  bool saved_values_are_inputs = true;     // values saved by name have no outputs, whatever they are called
  bool consistent_statistics = true;       // --consistent_check has rules of its own for statistics, too
  bool exempts_by_first_input = false;     // the operation is read from an input row's name, if there is one
  bool marks_first_output = false;         // for any bad output of an entry
  bool finite_growth_only = false;         // infinite relative errors count as none among several
  bool grad_needs_both_frameworks = true;  // across frameworks a missing requires_grad is no difference
  bool fused_dtypes_pass = false;          // of qkv and gate_up modules
  bool dtypes_by_spelling = false;         // torch.float32 and Float32 differ
  bool tensors_need_checksums = true;      // a tensor without checksum is a warning
  bool tells_unknown = true;               // which statistics one side alone has
  bool sums_as_recorded = false;           // norms count whatever recorders make of them
  bool xors_as_written = false;            // whatever their form, and called CRC-32
  bool tells_remarks = true;               // what kept tensors from being compared is a finding
  std::optional<double> ratio_in_words;    // what rule 2 says was its limit for outputs, whatever it was
  // Those of graphs have no numbers there.
  bool outputs_by_section = false;  // not by names, in which a module may be called `output`
  bool null_says_nothing = false;   // of requires_grad, dtype or shape: no rule speaks of it
  bool merged_ranks = false;     // shapes are those of parts; `_rank3` behind an operation is not of its name
  bool surplus_differs = false;  // an item that the golden side lacks differs from it in all that it has
};

/// All that a pair of ranks goes by.
struct RankTraits {
  MeasureTraits measure;
  JudgeTraits judge;
};

/// Those of the Python tool 26.x: --python-rules.
RankTraits python_rank_traits();

}  // namespace msprobe::verdict
