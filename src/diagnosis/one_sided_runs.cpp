// SPDX-License-Identifier: Apache-2.0
// Entries in a row that one side alone has: what they carry on, and whether they have an effect.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnosis/rank_judge.hpp"
#include "diagnosis/sentences.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Direction;
using dump::Side;
using dump::State;

/// Entries behind a run that may show its effect, where nobody is seen to take its outputs.
constexpr unsigned kLooks = 8;
constexpr std::size_t kShownOfRun = 4;

}  // namespace

/// Entries of the reference up to `end` have put out what they put out.
void RankJudge::advance_golden(std::uint32_t end) {
  for (; golden_next_ < end; ++golden_next_) {
    const auto parsed = dump::parse_entry_name(golden_name(golden_next_));
    if (!parsed || parsed->direction != Direction::forward) continue;
    if (alignment_.target_of[golden_next_] == kNone) {
      double error = 0;
      const Api& api = golden_.apis[golden_next_];
      for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
        if (golden_.items[i].state != State::input) continue;
        const std::uint32_t from = golden_flow_.find(golden_keys_.of(i));
        if (from != ContentMap::kUnknown) error = std::max(error, carried(kNone, from));
      }
      alone_golden_[golden_next_] = error;
      if (!compound_golden_[golden_next_] && !golden_only_.has(golden_next_)) {
        if (!run_open_) {
          runs_.push_back({{}, {}, last_paired_ == kNone ? 0 : order_of(last_paired_) + 1, forward_, kLooks});
          run_open_ = true;
        }
        if (runs_.back().golden.size() < kShownOfRun) runs_.back().golden.push_back(golden_next_);
        run_of_golden_[golden_next_] = static_cast<std::uint32_t>(runs_.size() - 1);
      }
    }
    golden_flow_.put_outputs(golden_keys_, golden_next_, compound_golden_[golden_next_]);
  }
}

void RankJudge::target_alone(std::uint32_t api_number) {
  const Api& api = target_.apis[api_number];
  double error = 0;
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    if (target_.items[i].state != State::input) continue;
    const std::uint32_t from = target_flow_.find(target_keys_.of(i));
    if (from == ContentMap::kUnknown) continue;
    error = std::max(error, carried(from, kNone));
    if (touched_[target_.items[from].api]) touched_[api_number] = true;
  }
  alone_target_[api_number] = error;
  if (!compound_[api_number] && !target_only_.has(api_number)) {
    if (!run_open_) {
      runs_.push_back({{}, {}, order_of(api_number), forward_, kLooks});
      run_open_ = true;
    }
    if (runs_.back().target.size() < kShownOfRun) runs_.back().target.push_back(api_number);
    run_of_target_[api_number] = static_cast<std::uint32_t>(runs_.size() - 1);
  }
  target_flow_.put_outputs(target_keys_, api_number, compound_[api_number]);
}

void RankJudge::close_run() {
  run_open_ = false;
}

/// Where nobody is seen to take what a run put out, a jump of errors right behind it shows its effect.
void RankJudge::look_at_runs(const Entry& entry) {
  if (entry.compound) return;
  for (std::size_t i = first_open_; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (run.settled || run.consumed || run.looks == 0) {
      if (i == first_open_) ++first_open_;
      continue;
    }
    if (i + 1 == runs_.size() && run_open_) break;
    --run.looks;
    const double error = std::max(entry.worst_in, entry.e_out);
    if (error > threshold_ * (run.error + entry.u))
      settle_run(run, target_name(entry.target), error, run.error);
  }
}

/// A run has an effect.
void RankJudge::settle_run(Run& run, std::string_view consumer, double error, double before) {
  if (run.settled) return;
  run.settled = true;
  if (other_operations_) return;
  Finding found;
  found.rule = Rule::structure;
  found.confidence = Confidence::certain;
  found.excess = kInfinite;
  found.order = run.order;
  const bool both = !run.target.empty() && !run.golden.empty();
  found.kind = both ? Kind::exchanged : run.target.empty() ? Kind::removed : Kind::added;
  name_places(found, run.target.empty() ? kNone : run.target[0], run.golden.empty() ? kNone : run.golden[0]);
  const auto list = [](const Side& side, const std::vector<std::uint32_t>& apis) {
    std::string text;
    for (const std::uint32_t api : apis) {
      const auto parsed = dump::parse_entry_name(side.text(side.apis[api].name));
      text +=
          (text.empty() ? "" : ", ") + std::string(parsed ? parsed->base : side.text(side.apis[api].name));
    }
    return text;
  };
  // Without an effect it may be that one side does not record them.
  const std::string_view verb = consumer.empty() ? "records" : "runs";
  if (both) {
    found.text = fmt::format("{} {} where golden {} {}", verb, list(target_, run.target), verb,
                             list(golden_, run.golden));
  } else if (run.target.empty()) {
    found.text = fmt::format("golden {} {} here, this run does not", verb, list(golden_, run.golden));
  } else {
    found.text = fmt::format("{} {}, golden does not", verb, list(target_, run.target));
  }
  if (!consumer.empty())
    found.text += fmt::format("; error {} at {}, {} before", error_text(error), consumer, error_text(before));
  found.concerned = std::max<std::size_t>(run.target.size(), run.golden.size());
  found.downstream = any_evidence_ && !run.target.empty() && touched_[run.target[0]];
  if (!consumer.empty()) {
    found.side = "the code differs, not a kernel";
  } else {
    found.confidence = Confidence::hint;
    if (!note_end(run, found)) found.text += "; no effect";
  }
  keep(std::move(found), run.error);
}

/// Where one side has no call of an operation behind: its recording may have ended, whatever the code does.
bool RankJudge::note_end(const Run& run, Finding& found) const {
  const bool by_target = run.golden.empty();
  if (!by_target && !run.target.empty()) return false;
  const Side& longer = by_target ? target_ : golden_;
  const std::vector<std::uint32_t>& partners = by_target ? alignment_.golden_of : alignment_.target_of;
  const std::uint32_t first = by_target ? run.target[0] : run.golden[0];
  std::size_t more = 0;
  bool others = false;
  for (std::uint32_t i = first; i < longer.apis.size(); ++i) {
    const auto parsed = dump::parse_entry_name(longer.text(longer.apis[i].name));
    // Modules, and the gradients of what was recorded before, may go on.
    const bool calls = parsed && !parsed->is_module && parsed->direction == Direction::forward;
    if (partners[i] == kNone) {
      ++more;
    } else if (calls) {
      return false;
    } else {
      others = true;
    }
  }
  const std::string_view shorter_is = by_target ? "golden" : "this run";
  const std::string_view longer_is = by_target ? "this run" : "golden";
  found.text = fmt::format("{} {}, {} continues for {} more {}", shorter_is,
                           others ? "records no more operation calls" : "ends here", longer_is,
                           human_count(more), more == 1 ? "entry" : "entries");
  found.next =
      "check whether both recordings stopped at the same place, whether one hit an exception or stopped "
      "recomputing (checkpointing), and whether the code does less there";
  return true;
}

}  // namespace msprobe::diagnosis
