// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rank_origins.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "dump/side.hpp"
#include "measuring/rank_coverage.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::State;
using pairing::kNone;

/// May evidence have a part in what the entry takes? A module is not asked, as it hands on what its calls
/// made.
bool may_be_reached(const Walk& walk, std::uint32_t api) {
  const bool call = walk.target.parsed_name(api).direction == dump::Direction::forward && !walk.compound[api];
  return !call || walk.touched[api] || walk.reached[api].open;
}

Origin origin_of(const Walk& walk, std::uint32_t index, const std::vector<const Finding*>& introduced) {
  const Item& item = walk.target.items[index];
  const std::uint32_t partner = walk.errors.golden_item[index];
  if (partner == kNone) return Origin::not_compared;
  const double e = walk.errors.e[index];
  const bool measured = item.is_tensor && !std::isnan(e);
  if (item.is_tensor && !measured) return Origin::not_compared;
  // NaN and infinities on both sides are neither an error nor equal.
  if (walk.errors.blind[index] != 0 && measuring::is_unknown(walk.rank, item, walk.golden.items[partner]))
    return Origin::not_compared;
  if (!item.is_tensor) {
    const std::string ours = dump::to_text(item.statistics[dump::kMax], walk.target.pool);
    if (ours == dump::to_text(walk.golden.items[partner].statistics[dump::kMax], walk.golden.pool))
      return Origin::equal;
  } else if (e == 0) {
    return Origin::equal;
  }
  bool own = false;  // the inputs of its entry were right, unless its error is large itself
  for (const Finding* found : introduced) {
    if (found->target_api != item.api) continue;
    own = true;
    const bool puts_out = found->rule != Rule::source && item.state == State::output;
    if (found->item == index || puts_out) return Origin::introduced;
  }
  const double u =
      std::max(measuring::unit_roundoff(walk.target.text(item.dtype)), measuring::kSingleRoundoff);
  const bool behind = walk.order_of(item.api) >= walk.fault_order;
  if (behind && ((walk.touched[item.api] && !own && !walk.untouched[index]) || !measured ||
                 (may_be_reached(walk, item.api) && e > walk.threshold * (walk.clean + u))))
    return Origin::propagated;
  if (!measured) return Origin::not_compared;
  if (!walk.unexplained[index]) return Origin::rounding;
  // Evidence of the whole step, as a setting of the optimizer, is found only after the walk.
  return behind ? Origin::propagated : Origin::unexplained;
}

}  // namespace

void find_origins(Walk& walk) {
  std::vector<const Finding*> introduced;  // the first, and what is no consequence of it
  for (const Finding& found : walk.out.findings) {
    if (found.is_evidence() && !found.downstream && !walk.history.evidence) introduced.push_back(&found);
  }
  std::sort(introduced.begin(), introduced.end(),
            [](const Finding* a, const Finding* b) { return a->target_api < b->target_api; });
  std::vector<const Finding*> here;
  walk.out.origin.resize(walk.target.items.size(), Origin::not_compared);
  std::uint32_t largest = kNone;
  ContentMap wrong;  // contents of items that are introduced or propagated
  auto next = introduced.begin();
  for (std::uint32_t api = 0; api < walk.out.looked_at; ++api) {
    here.clear();
    while (next != introduced.end() && (*next)->target_api < api) ++next;
    for (; next != introduced.end() && (*next)->target_api == api; ++next) here.push_back(*next);
    const bool ahead = walk.alignment.has_golden(api) && walk.order_of(api) < walk.fault_order;
    bool rounded = false;
    bool unexplained = false;
    for (const std::uint32_t i : walk.target.apis[api].items()) {
      walk.out.origin[i] = origin_of(walk, i, here);
      const std::uint64_t content = walk.target_keys.of(i);
      // A module's row has the content of a call's row, and is wrong where that one is.
      if (walk.compound[api] && walk.out.origin[i] == Origin::rounding &&
          wrong.find(content) != ContentMap::kUnknown)
        walk.out.origin[i] = Origin::propagated;
      if (walk.out.origin[i] >= Origin::propagated && content != 0) wrong.put(content, i);
      ++walk.out.counts[static_cast<std::size_t>(walk.out.origin[i])];
      rounded = rounded || walk.out.origin[i] == Origin::rounding;
      unexplained = unexplained || walk.out.origin[i] == Origin::unexplained;
      if (walk.out.origin[i] != Origin::propagated || !(walk.e_of(i) > walk.out.propagated_largest)) continue;
      walk.out.propagated_largest = walk.e_of(i);
      largest = api;
    }
    walk.out.agreeing += ahead && !unexplained ? 1 : 0;
    walk.out.rounded += ahead && !unexplained && rounded ? 1 : 0;
  }
  if (largest != kNone) walk.out.propagated_entry = walk.target_name(largest);
  for (std::uint32_t api = walk.out.looked_at; api < walk.target.apis.size(); ++api)
    walk.out.counts[static_cast<std::size_t>(Origin::not_compared)] += walk.target.apis[api].count;
}

}  // namespace msprobe::diagnosis
