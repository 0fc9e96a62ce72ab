// SPDX-License-Identifier: Apache-2.0
// Where the error of each tensor comes from, once all evidence of the rank is there.
#include <algorithm>
#include <cmath>

#include "diagnosis/rank_judge.hpp"

namespace msprobe::diagnosis {

using dump::Api;
using dump::Item;
using dump::State;

Origin RankJudge::origin_of(std::uint32_t index, const std::vector<const Finding*>& introduced,
                            double clean) const {
  const Item& item = target_.items[index];
  const std::uint32_t partner = errors_.golden_item[index];
  if (partner == kNone) return Origin::not_compared;
  const double e = errors_.e[index];
  const bool measured = item.is_tensor && !std::isnan(e);
  if (item.is_tensor && !measured) return Origin::not_compared;
  if (!item.is_tensor) {
    const std::string ours = dump::to_text(item.statistics[dump::kMax], target_.pool);
    if (ours == dump::to_text(golden_.items[partner].statistics[dump::kMax], golden_.pool))
      return Origin::equal;
  } else if (e == 0) {
    return Origin::equal;
  }
  bool own = false;  // what its entry took was right, unless it is large itself
  for (const Finding* found : introduced) {
    if (found->target_api != item.api) continue;
    own = true;
    const bool puts_out = found->rule != Rule::source && item.state == State::output;
    if (found->item == index || puts_out) return Origin::introduced;
  }
  const double u = std::max(unit_roundoff(target_.text(item.dtype)), kSingleRoundoff);
  const bool behind = order_of(item.api) >= fault_order_;
  if (behind &&
      ((touched_[item.api] && !own && !untouched_[index]) || !measured || e > threshold_ * (clean + u)))
    return Origin::propagated;
  return measured ? Origin::rounding : Origin::not_compared;
}

void RankJudge::find_origins() {
  std::vector<const Finding*> introduced;  // the first, and what is no consequence of it
  for (const Finding& found : out_.findings) {
    if (found.is_evidence() && !found.downstream && !history_.evidence) introduced.push_back(&found);
  }
  std::sort(introduced.begin(), introduced.end(),
            [](const Finding* a, const Finding* b) { return a->target_api < b->target_api; });
  std::vector<const Finding*> here;
  out_.origin.resize(target_.items.size(), Origin::not_compared);
  std::uint32_t largest = kNone;
  auto next = introduced.begin();
  for (std::uint32_t api = 0; api < out_.looked_at; ++api) {
    here.clear();
    while (next != introduced.end() && (*next)->target_api < api) ++next;
    for (; next != introduced.end() && (*next)->target_api == api; ++next) here.push_back(*next);
    const Api& entry = target_.apis[api];
    const bool ahead = alignment_.has_golden(api) && order_of(api) < fault_order_;
    bool rounded = false;
    for (std::uint32_t i = entry.first; i < entry.first + entry.count; ++i) {
      out_.origin[i] = origin_of(i, here, clean_);
      ++out_.counts[static_cast<std::size_t>(out_.origin[i])];
      rounded = rounded || out_.origin[i] == Origin::rounding;
      if (item_of(i).is_tensor && out_.origin[i] != Origin::not_compared) ++out_.measured;
      if (out_.origin[i] != Origin::propagated || !(e_of(i) > out_.propagated_largest)) continue;
      out_.propagated_largest = e_of(i);
      largest = api;
    }
    out_.agreeing += ahead ? 1 : 0;
    out_.rounded += ahead && rounded ? 1 : 0;
  }
  if (largest != kNone) out_.propagated_entry = target_name(largest);
  for (std::uint32_t api = out_.looked_at; api < target_.apis.size(); ++api)
    out_.counts[static_cast<std::size_t>(Origin::not_compared)] += target_.apis[api].count;
}

}  // namespace msprobe::diagnosis
