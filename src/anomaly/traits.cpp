// SPDX-License-Identifier: Apache-2.0
#include "anomaly/traits.hpp"

namespace msprobe::anomaly {

// Behind each trait stands the item of docs/differences.md that gives the reason why ours is another.
Traits python_traits() {
  return {
      .step_folders_only = true,     // N12, N15
      .needs_all_files = true,       // N11
      .pytorch_only = true,          // N11
      .stops_at_broken_rank = true,  // N13
      .distributed_only = true,      // N11
      .outer_values_only = true,     // N1
      .names_from_left = true,       // N10
      .search_by_rank = true,        // N2 to N9
  };
}

}  // namespace msprobe::anomaly
