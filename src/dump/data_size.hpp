// SPDX-License-Identifier: Apache-2.0
// The size of a rank's data files.
#pragma once

#include <cstdint>

#include "dump/tree.hpp"

namespace msprobe::dump {

/// An estimate from the sizes of some files: a rank may have ten thousands, on a file system that answers
/// slowly. 0 if the rank has no data files, or they cannot be seen.
std::uint64_t estimated_data_bytes(const RankDump& rank);

}  // namespace msprobe::dump
