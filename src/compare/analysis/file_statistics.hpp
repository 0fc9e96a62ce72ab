// SPDX-License-Identifier: Apache-2.0
// Statistics of the tensors themselves, where a dump has their files.
#pragma once

#include "compare/imports.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// Of floating tensors with files on both sides, whose recorded statistics differ: what the files hold takes
/// their place, summed in one way. What cannot be read keeps what was recorded, and a warning says how many
/// those are.
void take_file_statistics(RankResult& result);

}  // namespace msprobe::compare
