// SPDX-License-Identifier: Apache-2.0
// What holds of a rank as a whole: how far the runs are apart before it, and what its dumps cannot show.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "diagnosis/rank_judge.hpp"
#include "diagnosis/sentences.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {

/// How far the runs are apart before the first step that was recorded, by their parameters.
void RankJudge::assess_drift() {
  std::vector<double> errors;
  ContentMap known;
  double u = 0;
  errors_.for_each_parameter([&](std::uint32_t item, std::uint32_t golden) {
    const double own = unit_roundoff(target_.text(item_of(item).dtype));
    const std::uint64_t key = golden_keys_.of(golden);
    if (own == 0 || known.find(key) != ContentMap::kUnknown) return;
    known.put(key, golden);
    u = std::max(u, own);
    const Measure found = errors_.by_statistics_of(item, golden);
    if (found.known && std::isfinite(found.e)) errors.push_back(found.e);
  });
  drift_ = drift_of(std::move(errors), u);
}

/// The state that both runs are in before the step: evidence only where nothing within the step is.
void RankJudge::keep_drift() {
  if (!drift_) return;
  out_.drifted = true;
  const std::string much = fmt::format("{} of {} parameters differ already before the step, by up to {}",
                                       drift_->differing, drift_->parameters, error_text(drift_->largest));
  if (drift_->small || !drift_->first || any_evidence_) {
    out_.notes.push_back(much + ": record from an earlier step to see where that comes from");
    return;
  }
  Finding found = std::move(*drift_->first);
  found.confidence = Confidence::likely;
  found.concerned = drift_->differing;
  found.text = much;
  found.next =
      "record from the first step to see where that comes from; if both runs were resumed there, compare the "
      "checkpoints (msprobe ckpt_compare)";
  keep(std::move(found), 0);
}

/// What holds of all that was judged.
void RankJudge::take_notes() {
  if (!pair_.tensors) {
    for (std::string& limit : errors_.precision.limits()) out_.notes.push_back(std::move(limit));
  }
  const auto tell = [&](const OneRecorder& calls, const char* whose, const char* others) {
    if (calls.calls() == 0) return;
    out_.notes.push_back(fmt::format(
        "{} of {} are recorded in {} alone: {} recorder leaves such operations out, which is taken for no "
        "difference",
        calls.calls() == 1 ? "1 call" : human_count(calls.calls()) + " calls", calls.names(), whose, others));
  };
  tell(target_only_, "this run", "golden's");
  tell(golden_only_, "golden", "this run's");
  const auto partly = std::count(errors_.partial.begin(), errors_.partial.end(), 1);
  if (partly > 0) {
    out_.notes.push_back(fmt::format("of {} {} a statistic is known on one side alone: it is not compared",
                                     human_count(static_cast<std::uint64_t>(partly)),
                                     partly == 1 ? "tensor" : "tensors"));
  }
  history_.precision = errors_.precision;
}

}  // namespace msprobe::diagnosis
