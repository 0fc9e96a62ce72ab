// SPDX-License-Identifier: Apache-2.0
// A pair of ranks as the diagnosis sees it: rows become pairs of entries, metrics measures, and what a rank
// knows of its earlier steps goes along.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "comparison/culprit/noise_floor.hpp"
#include "comparison/result/result.hpp"
#include "comparison/result/tensor_rows.hpp"
#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::compare {

struct DiagnosisOptions {
  bool wanted = true;
  diagnosis::ReplayMode replay = diagnosis::ReplayMode::suspects;
  std::set<diagnosis::Rule> without;
  std::string noise_floor;  // a third dump, or what free_benchmark found; empty: none
  bool first = false;       // stop at the first certain evidence
};

/// The steps of a rank, in order.
struct RankHistory {
  diagnosis::History history;
  std::shared_ptr<const RankResult> before;  // the step before, where its tensors are needed once more
};

/// Gives the result its diagnosis. `tensors` may be null; it measures what was not measured yet, as it is
/// needed. `mapped`: rows do not pair as names or the alignment have it. `noise` may be null.
void diagnose(RankResult& result, TensorRows* tensors, const DiagnosisOptions& options, const Rules& rules,
              bool mapped, RankHistory& past, const NoiseFloor* noise);

}  // namespace msprobe::compare
