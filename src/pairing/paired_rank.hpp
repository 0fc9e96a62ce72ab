// SPDX-License-Identifier: Apache-2.0
// Both sides of a pair of ranks, and which of their entries and items belong together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/construct_json.hpp"
#include "pairing/alignment.hpp"
#include "pairing/consistent.hpp"
#include "pairing/joins.hpp"
#include "pairing/matching.hpp"
#include "pairing/side.hpp"

namespace msprobe::pairing {

struct PairedRank {
  std::string step;                   // label of the step folder; empty unless several steps were compared
  std::string rank;                   // label of the target's rank folder; empty for two files
  std::int64_t number = 0;            // of the rank; 0 if it has none
  std::optional<Backend> consistent;  // training against inference, and the software that trained
  Side target;
  Side golden;
  std::shared_ptr<Joins> target_joins;  // of merged ranks, by item; null without
  std::shared_ptr<Joins> golden_joins;
  std::shared_ptr<const dump::ConstructBeside> target_construct;  // null for a side without one
  std::shared_ptr<const dump::ConstructBeside> golden_construct;
  /// The pairs of entries: those that made the rows, or those that align_entries() found; null without
  /// either.
  std::shared_ptr<const pairing::Alignment> alignment;
  std::vector<Pair> rows;  // in target order; some have no target item
  std::uint64_t golden_only = 0;
  bool mapping_applies = true;  // the mapping file names something of the target

  /// Only for rows that have such an item.
  const Item& target_item(const Pair& row) const { return target.items[row.target]; }
  const Item& golden_item(const Pair& row) const { return golden.items[row.golden]; }
  /// Null if the row has no such item.
  const Item* find_target(const Pair& row) const { return row.has_target() ? &target_item(row) : nullptr; }
  const Item* find_golden(const Pair& row) const { return row.has_golden() ? &golden_item(row) : nullptr; }
  /// The target's name, or golden's where there is no target.
  std::string_view name_of(const Pair& row) const {
    return row.has_target() ? target.name(target_item(row)) : golden.name(golden_item(row));
  }
};

/// Gives the rank an alignment if it does not have one. `mapped`: a mapping made the rows, and so pairs
/// entries, too.
void align_entries(PairedRank& rank, bool mapped);

/// Marks the rows whose two names differ, as `name_of(side, item)` has them.
template <typename NameOf>
void mark_other_names(PairedRank& rank, OtherName mark, const NameOf& name_of) {
  for (Pair& row : rank.rows) {
    if (row.matched() &&
        name_of(rank.target, rank.target_item(row)) != name_of(rank.golden, rank.golden_item(row)))
      row.other_name = mark;
  }
}

}  // namespace msprobe::pairing
