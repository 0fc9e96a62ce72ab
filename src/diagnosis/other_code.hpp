// SPDX-License-Identifier: Apache-2.0
// Decides whether two runs are of one program or of two: another code base, or another parallel layout.
#pragma once

#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

/// Whether the modules and operations of both sides have too little in common for one program and its
/// changes.
bool are_two_code_bases(const measuring::MeasuredRank& rank);

/// Whether the two sides merge different numbers of ranks.
bool are_two_layouts(const measuring::MeasuredRank& rank);

}  // namespace msprobe::diagnosis
