// SPDX-License-Identifier: Apache-2.0
#include "pairing/paired_rank.hpp"

#include <unordered_map>

namespace msprobe::compare {
namespace {

/// By a mapping: entries belong together if rows of theirs do; of several partners the first counts. Entries
/// without rows go by name.
diagnosis::Alignment alignment_of_rows(const PairedRank& rank) {
  diagnosis::Alignment alignment;
  alignment.golden_of.assign(rank.target.apis.size(), diagnosis::kNone);
  alignment.target_of.assign(rank.golden.apis.size(), diagnosis::kNone);
  const auto pair = [&](std::uint32_t ours, std::uint32_t theirs) {
    if (alignment.golden_of[ours] != diagnosis::kNone || alignment.target_of[theirs] != diagnosis::kNone)
      return;
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
  alignment.golden_only = diagnosis::golden_only_of(alignment.target_of);
  return alignment;
}

}  // namespace

void align_entries(PairedRank& rank, bool mapped) {
  if (rank.alignment) return;
  rank.alignment = std::make_shared<const diagnosis::Alignment>(
      mapped ? alignment_of_rows(rank) : diagnosis::align(rank.target, rank.golden));
}

}  // namespace msprobe::compare
