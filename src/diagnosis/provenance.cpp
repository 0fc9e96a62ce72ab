// SPDX-License-Identifier: Apache-2.0
// Where an input that nobody recorded may come from, and what can be known of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "diagnosis/rank_judge.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/structure.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {

using dump::Api;
using dump::Item;
using dump::State;

/// Is it handed to all modules around the entry that takes it, or a part of what is? What is trained, and
/// what an optimizer takes, is no data.
bool RankJudge::may_be_data(const Entry& entry, std::uint32_t index) {
  if (item_of(index).requires_grad == dump::RequiresGrad::yes) return false;
  if (construct_ == nullptr) return true;
  constexpr int kMostLevels = 64;
  constexpr std::uint32_t kMostInputs = 256;
  std::uint64_t key = target_keys_.of(index);
  std::string_view around = construct_->parent(target_name(entry.target));
  for (int level = 0; level < kMostLevels && !around.empty(); ++level, around = construct_->parent(around)) {
    const std::uint32_t module = errors_.entry_named(around);
    if (module == kNone) {
      if (module_path(around).empty()) return false;  // `optimizer`
      continue;
    }
    errors_.measure(module);
    const Api& api = target_.apis[module];
    std::uint32_t handed = kNone;
    for (std::uint32_t i = api.first; i < api.first + std::min(api.count, kMostInputs); ++i) {
      const Item& item = item_of(i);
      if (!item.is_tensor || item.state != State::input) continue;
      const std::uint64_t own = target_keys_.of(i);
      if (key != 0 && own == key) {
        handed = i;
        break;
      }
      const bool from_outside = item.requires_grad != dump::RequiresGrad::yes && e_of(i) > 0 &&
                                target_flow_.find(own) == ContentMap::kUnknown;
      if (from_outside && handed == kNone) handed = i;
    }
    if (handed == kNone) return false;
    key = target_keys_.of(handed);
  }
  return true;
}

/// May an input of unknown origin have got its error from evidence?
bool RankJudge::is_tainted(const Entry& entry, std::uint32_t index) const {
  if (!any_evidence_ && !first_parameter_) return false;
  const double clean = any_evidence_ ? clean_ : before_first_parameter_;
  return e_of(index) > threshold_ * (clean + entry.u);
}

/// What the entry takes, and from whom: is it downstream of evidence, may it be, is any of it not?
void RankJudge::follow_inputs(Entry& entry) {
  const Api& api = target_.apis[entry.target];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    const Item& item = item_of(i);
    if (item.state != State::input) {
      if (item.state == State::parameters && !history_.evidence) untouched_[i] = true;
      continue;
    }
    const std::uint64_t key = target_keys_.of(i);
    const std::uint32_t from = target_flow_.find(key);
    if (from != ContentMap::kUnknown) {
      const bool touched = touched_[target_.items[from].api];
      entry.touched = entry.touched || touched;
      untouched_[i] = !touched;
      continue;
    }
    if (!item.is_tensor || errors_.golden_item[i] == kNone) continue;
    if (parameter_items_.find(key) != ContentMap::kUnknown) {
      untouched_[i] = !history_.evidence;
    } else {
      entry.tainted = entry.tainted || is_tainted(entry, i);
    }
  }
}

/// A change between two entries that one side alone ran something between is that something's. False if there
/// is none.
bool RankJudge::settle_between(std::uint32_t producer, const Entry& entry, double error, double before) {
  constexpr std::size_t kMostRuns = 64;
  const auto end = runs_.rbegin() + static_cast<std::ptrdiff_t>(std::min(runs_.size(), kMostRuns));
  for (auto run = runs_.rbegin(); run != end; ++run) {
    if (run->order < order_of(producer)) return false;
    const bool in_sight = run->settled || (!run->consumed && run->looks > 0);
    if (run->order > order_of(entry.target) || !in_sight) continue;
    settle_run(*run, target_name(entry.target), error, before);
    return true;
  }
  return false;
}

/// What of an entry's inputs statistics do not show, and who made it; empty if there is nothing of the kind.
RankJudge::Unseen RankJudge::unseen_input(const Entry& entry) const {
  const Api& api = target_.apis[entry.target];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    const Item& item = item_of(i);
    if (item.state != State::input || errors_.blind[i] == 0) continue;
    const double least = number_of(target_, item, dump::kMin);
    const double largest = number_of(target_, item, dump::kMax);
    Unseen unseen;
    unseen.text = fmt::format("{} contains {}, which hides other differences from statistics",
                              place_text(target_, item),
                              std::isinf(least)     ? "-inf"
                              : std::isinf(largest) ? "inf"
                                                    : "NaN or numbers too large for a norm");
    const std::uint32_t from = target_flow_.find(target_keys_.of(i));
    if (from != ContentMap::kUnknown) unseen.maker = target_name(target_.items[from].api);
    return unseen;
  }
  return {};
}

}  // namespace msprobe::diagnosis
