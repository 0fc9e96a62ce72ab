// SPDX-License-Identifier: Apache-2.0
// What can be otherwise in the analysis, for the sake of the Python tool; the defaults are our way.
#pragma once

namespace msprobe::anomaly {

struct Traits {
  bool step_folders_only = false;     // as input; one without ranks has no anomaly
  bool needs_all_files = false;       // of every rank, stack.json in its older form
  bool pytorch_only = false;          // other frameworks are refused
  bool stops_at_broken_rank = false;  // which is left out otherwise
  bool distributed_only = false;      // communication is what begins with `Distributed.`
  bool outer_values_only = false;     // none in lists and tuples; what is only received into is an input
  bool names_from_left = false;       // the operation is a name's second part, its direction a word in it
  bool search_by_rank = false;        // along each rank's own chain, through calls that fit one another
};

/// Those of the Python tool 26.x: --python-rules.
Traits python_traits();

}  // namespace msprobe::anomaly
