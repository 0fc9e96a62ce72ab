// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/item_pairs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "dump/names.hpp"
#include "pairing/alignment.hpp"
#include "pairing/item_partners.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/parallel.hpp"

namespace msprobe::graph {
namespace {

using dump::Api;
using dump::Item;
using dump::Side;
using dump::State;
using pairing::kUnmatched;
using pairing::Unmatched;

constexpr std::size_t kSections = 5;
using ItemNumbers = std::vector<std::uint32_t>;
using Sections = std::array<ItemNumbers, kSections>;

/// The items of an entry by section, without those that `wanted` rejects.
template <typename Wanted>
Sections sections_of(const Side& side, const Api& entry, Wanted&& wanted) {
  Sections sections;
  for (const std::uint32_t i : entry.items()) {
    if (wanted(i)) sections[static_cast<std::size_t>(side.items[i].state)].push_back(i);
  }
  return sections;
}

/// Is the item an argument passed by name, such as `.input.dim`?
bool is_keyword(const Side& side, const Item& item) {
  if (item.state != State::input) return false;
  const pairing::Place place = pairing::place_of(side, item);
  return !place.front.empty() && !dump::is_digits(place.rest.substr(0, place.rest.find('.')));
}

/// Is the item the gradient of an argument, an output of a backward call?
bool is_gradient(const Side& side, const Item& item) {
  if (item.state != State::output) return false;
  const dump::EntryName parsed = side.parsed_name(item.api);
  return parsed.direction == dump::Direction::backward;
}

}  // namespace

void pair_items(verdict::RankResult& result, const std::vector<std::uint32_t>& golden_of) {
  const Side& target = result.target;
  const Side& golden = result.golden;
  pairing::Alignment alignment;
  for (const std::uint32_t g : golden_of)
    alignment.golden_of.push_back(g < golden.apis.size() ? g : pairing::kNone);
  ItemNumbers partners = pairing::pair_items(target, golden, alignment);
  // If the two frameworks order gradients differently, gradients pair only by shape, never by position.
  const bool by_role = pairing::gives_gradients_otherwise(target, golden);
  const auto is_left = [&](const Side& side, std::uint32_t i) {
    return !is_keyword(side, side.items[i]) && !(by_role && is_gradient(side, side.items[i]));
  };
  std::vector<bool> taken(golden.items.size());
  for (const std::uint32_t g : partners) {
    if (g != pairing::kNone) taken[g] = true;
  }
  constexpr std::size_t kTogether = 512;
  parallel_for((target.apis.size() + kTogether - 1) / kTogether, [&](std::size_t block) {
    for (std::size_t t = block * kTogether; t < std::min(target.apis.size(), (block + 1) * kTogether); ++t) {
      if (!alignment.has_golden(static_cast<std::uint32_t>(t))) continue;
      const Sections ours = sections_of(target, target.apis[t], [&](std::uint32_t i) {
        return partners[i] == pairing::kNone && is_left(target, i);
      });
      const Sections theirs = sections_of(golden, golden.apis[golden_of[t]],
                                          [&](std::uint32_t i) { return !taken[i] && is_left(golden, i); });
      for (std::size_t section = 0; section < kSections; ++section) {
        for (std::size_t i = 0; i < std::min(ours[section].size(), theirs[section].size()); ++i)
          partners[ours[section][i]] = theirs[section][i];
      }
    }
  });
  result.rows.resize(target.items.size());
  for (std::uint32_t i = 0; i < partners.size(); ++i) {
    const bool alone = golden_of[target.items[i].api] == kUnmatched;
    const Unmatched reason = partners[i] != pairing::kNone ? Unmatched::no
                             : alone                       ? Unmatched::entry_missing
                                                           : Unmatched::item_missing;
    result.rows[i] = {.target = i, .golden = partners[i], .reason = reason};
  }
}

}  // namespace msprobe::graph
