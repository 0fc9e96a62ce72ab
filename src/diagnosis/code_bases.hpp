// SPDX-License-Identifier: Apache-2.0
// Compares two implementations of one model, for example a port and its original. The names and operations of
// one say nothing about the other; the contents of the tensors show where they agree.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

/// Finds where the implementations stop agreeing: a stretch of operations on both sides. A note says up to
/// where they agree.
RankDiagnosis diagnose_code_bases(const measuring::MeasuredRank& rank,
                                  const std::vector<std::string>& framework_frames, History& history);

/// Diagnoses two parallel layouts: returns the diagnosis by names if contents confirm it, else the diagnosis
/// by contents. `history` is the state after the step by names, `before` the state before it.
RankDiagnosis diagnose_layouts(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                               const std::vector<std::string>& framework_frames, History& history,
                               const History& before);

/// Diagnoses one code base whose parameters differ, for example by merged adapters or folded norms. Returns
/// the diagnosis by contents if both sides agree to the end of the first step in full precision, else the
/// diagnosis by names.
RankDiagnosis unless_it_computes_the_same(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                                          const std::vector<std::string>& framework_frames, History& history,
                                          const History& before);

}  // namespace msprobe::diagnosis
