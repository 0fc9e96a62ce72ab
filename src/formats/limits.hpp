// SPDX-License-Identifier: Apache-2.0
// What readers of every format refuse.
#pragma once

#include <cstddef>

namespace msprobe::formats {

inline constexpr std::size_t kMaxRank = 64;  // dimensions of a tensor, NumPy's own limit

}  // namespace msprobe::formats
