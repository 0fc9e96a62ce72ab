// SPDX-License-Identifier: Apache-2.0
#include "pairing/item_partners.hpp"

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "pairing/updates.hpp"
#include "support/parallel.hpp"

namespace msprobe::pairing {
namespace {

using dump::Api;
using dump::Side;

struct PlaceHash {
  std::size_t operator()(const std::pair<dump::State, Place>& key) const {
    constexpr std::size_t kFactor = 31;
    const std::size_t place =
        kFactor * std::hash<std::string_view>{}(key.second.rest) + key.second.front.size();
    return kFactor * place + static_cast<std::size_t>(key.first);
  }
};

/// Pairs the items of two entries that have the same place.
void pair_by_place(const Side& target, const Api& ours, const Side& golden, const Api& theirs,
                   std::vector<std::uint32_t>& partners) {
  using Key = std::pair<dump::State, Place>;
  const auto key = [](const Side& side, std::uint32_t item) {
    return Key{side.items[item].state, place_of(side, side.items[item])};
  };
  // Nearly always the n-th item is the n-th.
  std::uint32_t same = 0;
  while (same < ours.count && same < theirs.count &&
         key(target, ours.first + same) == key(golden, theirs.first + same)) {
    partners[ours.first + same] = theirs.first + same;
    ++same;
  }
  if (same == ours.count || same == theirs.count) return;
  std::unordered_map<Key, std::uint32_t, PlaceHash> left;
  for (std::uint32_t i = theirs.first + same; i < theirs.first + theirs.count; ++i)
    left.try_emplace(key(golden, i), i);
  for (std::uint32_t i = ours.first + same; i < ours.first + ours.count; ++i) {
    const auto found = left.find(key(target, i));
    if (found == left.end()) continue;
    partners[i] = found->second;
    left.erase(found);
  }
}

/// Pairs items that frameworks list in another order or under other names.
void pair_by_role(const Side& target, const Api& ours, const Side& golden, const Api& theirs,
                  std::vector<std::uint32_t>& partners) {
  const RolePartners roles = by_role(target, ours, golden, theirs);
  if (roles.partners.empty()) return;
  auto role = roles.partners.begin();
  for (const std::uint32_t i : ours.items()) {
    if (target.items[i].state == roles.state) partners[i] = *role++;
  }
}

}  // namespace

std::vector<std::uint32_t> pair_items(const Side& target, const Side& golden, const Alignment& alignment) {
  std::vector<std::uint32_t> partners(target.items.size(), kNone);
  const bool other_roles = pairs_by_role(target, golden);
  std::optional<Parameters> target_parameters;  // where calls take lists of them
  std::optional<Parameters> golden_parameters;
  for (const Api& api : target.apis) {
    if (target_parameters || !takes_parameter_lists(target.text(api.name))) continue;
    target_parameters.emplace(target);
    golden_parameters.emplace(golden);
  }
  parallel_blocks(target.apis.size(), [&](std::size_t t) {
    if (alignment.golden_of[t] == kNone) return;
    const Api& ours = target.apis[t];
    const Api& theirs = golden.apis[alignment.golden_of[t]];
    pair_by_place(target, ours, golden, theirs, partners);
    if (other_roles) pair_by_role(target, ours, golden, theirs, partners);
    if (target_parameters && takes_parameter_lists(target.text(ours.name)))
      pair_lists(target, ours, golden, theirs, *target_parameters, *golden_parameters, partners);
  });
  return partners;
}

}  // namespace msprobe::pairing
