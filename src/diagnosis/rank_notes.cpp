// SPDX-License-Identifier: Apache-2.0
// What holds of a rank as a whole: how far the runs are apart before it, and what its dumps cannot show.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "diagnosis/rank_judge.hpp"
#include "diagnosis/sentences.hpp"
#include "pairing/roles.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {

/// The error of a tensor ahead of its turn; where tensors are read one by one, as far as statistics show.
double RankJudge::foreseen(std::uint32_t item, std::uint32_t golden) const {
  if (!options_.first) return errors_.e[item];
  const Measure found = errors_.by_statistics_of(item, golden);
  return found.known ? found.e : NAN;
}

/// How far the runs are apart before the first step that was recorded, by their parameters.
void RankJudge::assess_drift() {
  std::vector<double> errors;
  ContentMap known;
  double u = 0;
  for_each_parameter(target_, errors_.golden_item, [&](std::uint32_t item, std::uint32_t golden) {
    const double own = unit_roundoff(target_.text(item_of(item).dtype));
    const std::uint64_t key = golden_keys_.of(golden);
    if (own == 0 || known.find(key) != ContentMap::kUnknown) return;
    known.put(key, golden);
    u = std::max(u, own);
    if (const double e = foreseen(item, golden); std::isfinite(e)) errors.push_back(e);
  });
  drift_ = drift_of(std::move(errors), u);
  if (drift_) foresee_gradients();
}

/// The gradients behind the step show which parameters were moved by noise before it.
void RankJudge::foresee_gradients() {
  std::vector<double> errors;
  for (std::uint32_t api = 0; api < target_.apis.size(); ++api) {
    const auto parsed = dump::parse_entry_name(target_name(api));
    if (!parsed || parsed->direction != dump::Direction::parameters_grad) continue;
    const dump::Api& entry = target_.apis[api];
    for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i) {
      if (!item_of(i).is_tensor || errors_.golden_item[i] == kNone) continue;
      const double e = foreseen(i, errors_.golden_item[i]);
      if (!std::isfinite(e)) continue;
      history_.gradient_traces[gradient_key(parsed->base, target_.name(item_of(i)))].error =
          static_cast<float>(e);
      errors.push_back(e);
    }
  }
  drift_->gradients = median_of(std::move(errors));
}

/// The state that both runs are in before the step.
void RankJudge::note_drift() {
  if (!drift_) return;
  out_.drifted = true;
  out_.apart = !drift_->small;
  out_.notes.push_back(fmt::format(
      "{} of {} parameters already differ before the step, by up to {}: record from {} to see where that "
      "comes from{}",
      drift_->differing, drift_->parameters, error_text(drift_->largest),
      out_.apart ? "the first step" : "an earlier step",
      out_.apart ? "; if both runs were resumed there, compare the checkpoints (msprobe ckpt_compare)" : ""));
}

namespace {

/// How many entries stand behind the last one that has a partner, none of which calls an operation: those are
/// reported as a hint.
std::size_t entries_behind(const dump::Side& side, const std::vector<std::uint32_t>& partners) {
  std::size_t behind = 0;
  for (std::size_t i = side.apis.size(); i > 0 && partners[i - 1] == kNone; --i) {
    const auto parsed = dump::parse_entry_name(side.text(side.apis[i - 1].name));
    if (parsed && !parsed->is_module && parsed->direction == dump::Direction::forward) return 0;
    ++behind;
  }
  return behind;
}

}  // namespace

/// What holds of all that was judged.
void RankJudge::take_notes() {
  if (step_ && golden_step_ && *step_ != *golden_step_) {
    out_.notes.push_back(
        fmt::format("this run was recorded at step {}, golden at step {}", *step_, *golden_step_));
  }
  if (!tensors_) {
    for (std::string& limit : history_.precision->limits()) out_.notes.push_back(std::move(limit));
  }
  const auto note = [&](const OneRecorder& calls, const char* whose, const char* others) {
    if (calls.calls() == 0) return;
    if (calls.by_level()) {
      const bool one = calls.calls() == 1;
      out_.notes.push_back(fmt::format(
          "{} {} recorded in {} only, because the dumps have different levels: modules are compared as a "
          "whole",
          one ? "1 operation" : human_count(calls.calls()) + " operations", one ? "is" : "are", whose));
      return;
    }
    out_.notes.push_back(
        fmt::format("{} of {} {} recorded in {} only: {} recorder does not record such operations, so they "
                    "do not count as "
                    "a difference",
                    calls.calls() == 1 ? "1 call" : human_count(calls.calls()) + " calls", calls.names(),
                    calls.calls() == 1 ? "is" : "are", whose, others));
  };
  note(target_only_, "this run", "golden's");
  note(golden_only_, "golden", "this run's");
  const auto ends = [&](std::size_t behind, std::size_t all, const char* shorter, const char* longer) {
    // Some recorders leave a few gradients out.
    constexpr std::size_t kFewest = 8;
    constexpr std::size_t kPart = 20;
    if (behind < std::max(kFewest, all / kPart)) return;
    out_.notes.push_back(
        fmt::format("{} ends early in {}: {} continues for {} more entries, which are not compared", shorter,
                    out_.step.empty() ? "the step" : out_.step, longer, human_count(behind)));
  };
  ends(entries_behind(golden_, alignment_.target_of), golden_.apis.size(), "this run", "golden");
  ends(entries_behind(target_, alignment_.golden_of), target_.apis.size(), "golden", "this run");
  const auto partly = std::count(errors_.partial.begin(), errors_.partial.end(), 1);
  if (partly > 0) {
    out_.notes.push_back(fmt::format("{} {} a statistic on one side only: it is not compared",
                                     human_count(static_cast<std::uint64_t>(partly)),
                                     partly == 1 ? "tensor has" : "tensors have"));
  }
  const auto unmasked = std::count(errors_.unmasked.begin(), errors_.unmasked.end(), 1);
  if (unmasked > 0) {
    out_.notes.push_back(fmt::format(
        "{} of in-place activations {} recorded before them by one recorder, and not compared",
        unmasked == 1 ? "a gradient" : human_count(static_cast<std::uint64_t>(unmasked)) + " gradients",
        unmasked == 1 ? "is" : "are"));
  }
}

}  // namespace msprobe::diagnosis
