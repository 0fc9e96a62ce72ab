// SPDX-License-Identifier: Apache-2.0
// Are two runs of one program, or of two: another code base, or another parallel layout?
#pragma once

#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

/// Do modules and operations of both sides have too little in common for one program and its changes?
bool are_two_code_bases(const measuring::MeasuredRank& rank);

/// Are so many ranks merged on one side, and others on the other?
bool are_two_layouts(const measuring::MeasuredRank& rank);

}  // namespace msprobe::diagnosis
