// SPDX-License-Identifier: Apache-2.0
// Tensor mode's middle part: opens the files behind every row and measures them, in parallel.
#pragma once

#include "compare/result/result.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

/// Fills result.metrics and the rows' findings of them. A pair that cannot be read or does not fit is a row
/// that says so. `print_rows` logs one line a row.
void compare_tensor_rows(RankResult& result, bool print_rows, Progress* progress);

}  // namespace msprobe::compare
