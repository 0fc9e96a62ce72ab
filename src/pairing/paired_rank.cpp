// SPDX-License-Identifier: Apache-2.0
#include "pairing/paired_rank.hpp"

#include <unordered_map>

#include "pairing/item_partners.hpp"

namespace msprobe::pairing {
namespace {

/// The alignment that follows from the rows of a mapping: entries are partners if some of their rows are; the
/// first of several partners counts. Entries without rows pair by name.
pairing::Alignment alignment_of_rows(const PairedRank& rank) {
  pairing::Alignment alignment;
  alignment.golden_of.assign(rank.target.apis.size(), pairing::kNone);
  alignment.target_of.assign(rank.golden.apis.size(), pairing::kNone);
  const auto pair = [&](std::uint32_t ours, std::uint32_t theirs) {
    if (alignment.golden_of[ours] != pairing::kNone || alignment.target_of[theirs] != pairing::kNone) return;
    alignment.golden_of[ours] = theirs;
    alignment.target_of[theirs] = ours;
  };
  for (const Pair& row : rank.rows) {
    if (row.matched()) pair(rank.target_item(row).api, rank.golden_item(row).api);
  }
  std::unordered_map<std::string_view, std::uint32_t> empty;
  for (std::uint32_t i = 0; i < rank.golden.apis.size(); ++i) {
    if (rank.golden.apis[i].count == 0) empty.emplace(rank.golden.text(rank.golden.apis[i].name), i);
  }
  for (std::uint32_t i = 0; i < rank.target.apis.size(); ++i) {
    if (rank.target.apis[i].count != 0) continue;
    if (const auto found = empty.find(rank.target.text(rank.target.apis[i].name)); found != empty.end())
      pair(i, found->second);
  }
  check_inverse(alignment);
  alignment.golden_item_of = pair_items(rank.target, rank.golden, alignment);
  alignment.golden_only = pairing::golden_only_of(alignment.target_of);
  return alignment;
}

}  // namespace

void align_entries(PairedRank& rank, bool mapped) {
  if (rank.alignment) return;
  // If the sides run other backward passes, the place of the optimizer's calls says which gradients add up.
  const bool other_entries = rank.target.apis.size() != rank.golden.apis.size();
  const auto table = [&](const std::shared_ptr<const dump::ConstructBeside>& construct) {
    return other_entries && construct ? &construct->table() : nullptr;
  };
  rank.alignment = std::make_shared<const pairing::Alignment>(
      mapped ? alignment_of_rows(rank)
             : pairing::align(rank.target, rank.golden, table(rank.target_construct),
                              table(rank.golden_construct)));
}

}  // namespace msprobe::pairing
