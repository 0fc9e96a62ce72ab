// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/communication_rule.hpp"

#include <algorithm>
#include <utility>

#include "diagnosis/sentences.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;

}  // namespace

void note_communication(Walk& walk, EntryPair& entry) {
  CommPlace place;
  place.api = entry.target;
  place.e_in = entry.e_in;
  place.e_out = entry.e_out;
  place.u = entry.u;
  place.arrived =
      entry.e_out > walk.threshold * (entry.e_in + entry.u) &&
      !walk.equivalent_modules.is_on_way_of_same_gradients(
          walk.target_name(entry.target), {}, walk.order_of(entry.target), {.error = walk.before});
  place.follows = entry.touched || entry.upstream.open;
  place.call.operation = entry.name.operation();
  place.call.call = walk.target.calls.find(walk.target_name(entry.target))->second;
  if (place.arrived) {
    Finding names;
    walk.name_places(names, entry.target, entry.golden);
    place.entry = std::move(names.entry);
    place.golden_entry = std::move(names.golden_entry);
    place.module = std::move(names.module);
    place.where = std::move(names.where);
    const std::uint64_t order = walk.order_of(entry.target);
    if (walk.fault_order == UINT64_MAX) walk.clean = walk.before;
    walk.fault_order = std::min(walk.fault_order, order);
    entry.touched = true;
  }
  walk.out.communication.push_back(std::move(place));
}

void note_communication_left_out(Walk& walk, std::uint32_t first) {
  for (std::uint32_t api = first; api < walk.target.apis.size(); ++api) {
    const auto call = walk.target.calls.find(walk.target_name(api));
    const dump::EntryName parsed = walk.target.parsed_name(api);
    if (call == walk.target.calls.end() || parsed.direction != Direction::forward ||
        !walk.alignment.has_golden(api))
      continue;
    CommPlace place;
    place.api = api;
    place.e_in = measuring::kInfinite;
    place.call.operation = parsed.operation();
    place.call.call = call->second;
    walk.out.communication.push_back(std::move(place));
  }
}

}  // namespace msprobe::diagnosis
