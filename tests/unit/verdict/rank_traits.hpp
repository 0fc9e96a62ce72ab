// SPDX-License-Identifier: Apache-2.0
// For tests that run with and without --python-rules.
#pragma once

#include "verdict/traits.hpp"

namespace msprobe::verdict {

inline RankTraits rank_traits(bool python) {
  return python ? python_rank_traits() : RankTraits();
}

}  // namespace msprobe::verdict
