// SPDX-License-Identifier: Apache-2.0
// Says which rows or columns of a parameter differ, if they are few.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/line_hash.hpp"

namespace msprobe::checkpoint {

/// "only rows 3 to 6 differ: 0 throughout in the second"; empty if more than a quarter of the rows and of the
/// columns differ. Both sides have that many rows and columns.
std::string differing_lines(const LineHashes& first, const LineHashes& second, std::int64_t rows,
                            std::int64_t columns);

}  // namespace msprobe::checkpoint
