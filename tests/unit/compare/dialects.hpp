// SPDX-License-Identifier: Apache-2.0
// Tests that hold for both dialects, or for each its own.
#pragma once

#include "compare/dialect.hpp"

namespace msprobe::compare {

inline Dialect dialect(bool python) {
  return python ? python_dialect() : Dialect();
}

}  // namespace msprobe::compare
