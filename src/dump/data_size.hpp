// SPDX-License-Identifier: Apache-2.0
// How much the data files of a rank take.
#pragma once

#include <cstdint>

#include "dump/tree.hpp"

namespace msprobe::dump {

/// An estimate by the sizes of some of them: a rank may have ten thousands, on a file system that answers
/// slowly. 0 where there are none, or none that can be seen.
std::uint64_t estimated_data_bytes(const RankDump& rank);

}  // namespace msprobe::dump
