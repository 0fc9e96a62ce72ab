// SPDX-License-Identifier: Apache-2.0
// Two implementations of one model, as a port and what it was ported from: names and operations of one say
// nothing of the other, and what is in the tensors says where they agree.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

/// Where the implementations stop to agree, a stretch of operations on both sides; that they agree is said in
/// a note.
RankDiagnosis diagnose_code_bases(const measuring::MeasuredRank& rank,
                                  const std::vector<std::string>& framework_frames, History& history);

/// Of two layouts: what names show, if contents confirm it; else what these show. `history` is that behind
/// the step by names, `before` that ahead of it.
RankDiagnosis diagnose_layouts(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                               const std::vector<std::string>& framework_frames, History& history,
                               const History& before);

/// Of one code base whose parameters are others, as merged adapters or folded norms: what contents show if
/// they agree to the end of the first step, in full precision, else what names show.
RankDiagnosis unless_it_computes_the_same(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                                          const std::vector<std::string>& framework_frames, History& history,
                                          const History& before);

}  // namespace msprobe::diagnosis
