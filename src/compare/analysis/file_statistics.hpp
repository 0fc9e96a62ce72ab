// SPDX-License-Identifier: Apache-2.0
// Computes statistics from the recorded tensors, where a dump has their files.
#pragma once

#include "verdict/result.hpp"

namespace msprobe::compare {

/// Replaces differing recorded statistics of floating tensors that have files on both sides by statistics of
/// the files, which are summed in one way. Tensors that cannot be read keep the recorded statistics, and a
/// warning says how many they are.
void take_file_statistics(verdict::RankResult& result);

}  // namespace msprobe::compare
