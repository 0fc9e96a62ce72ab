// SPDX-License-Identifier: Apache-2.0
// Which rows or columns of a parameter differ, where it is few of them.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/line_hash.hpp"

namespace msprobe::checkpoint {

/// "only rows 3 to 6 differ: 0 throughout in the second"; empty where more than a quarter of both does. Both
/// have that many rows and columns.
std::string differing_lines(const LineHashes& first, const LineHashes& second, std::int64_t rows,
                            std::int64_t columns);

}  // namespace msprobe::checkpoint
