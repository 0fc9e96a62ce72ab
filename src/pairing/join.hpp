// SPDX-License-Identifier: Apache-2.0
// Pairs rows by their keys: each way of pairing makes the keys of the target's rows in its own way.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pairing/matching.hpp"

namespace msprobe::pairing {

/// Keys of one side: an item's key is the key of its entry plus the rest of its name.
class EntryKeys {
 public:
  /// Returns the name of an entry on the other side; the same text for an entry that has the same name there.
  using Rename = std::function<std::string(std::string_view name)>;

  /// `renumber`: backward calls count by order of appearance among those of one name.
  EntryKeys(const Side& side, const Rename& rename, bool renumber);

  /// `buffer` is room for a key that has to be made.
  std::string_view of(const Item& item, std::string& buffer) const;
  std::string_view of_entry(std::uint32_t api) const;
  const Side& side() const { return side_; }

 private:
  const Side& side_;
  std::vector<std::string> changed_;  // by entry; empty: its own name. None at all if no key is another one
  const std::string& changed(std::uint32_t api) const;
};

/// A row's key, and where to look it up.
struct RowKey {
  enum class Among { keys, names, nothing };  // the golden keys; the golden row names as they stand
  std::string_view text;
  Among among = Among::keys;
};

/// Makes the keys of the target's rows.
struct TargetKeys {
  /// Called by several threads.
  std::function<RowKey(const Item& item, std::string& buffer)> of;
  /// The key of an entry. It shows whether golden has a partner of the entry, for the message about a row
  /// without one.
  std::function<std::string_view(std::uint32_t api)> of_entry;
};

/// Rows with equal keys are paired, each with each where keys repeat; FormatError if that would multiply the
/// rows without bound.
Matching join(const Side& target, const TargetKeys& target_keys, const EntryKeys& golden_keys,
              const Rules& rules, DtypeCheck check);

/// Finishes pairs that were found in another way: checks their dtypes, and counts the rows that are left.
Matching finish_pairs(const Side& target, const Side& golden, std::vector<Pair> pairs, const Rules& rules,
                      DtypeCheck check);

// Fuzzy match (docs/pairing.md, "-fm"): rows of one name but for the call number, in order of execution.

/// A key that equals nothing.
inline constexpr std::uint32_t kNoKey = UINT32_MAX;

/// Pairs rows in order. Two queues are filled in step, one row of each side at a time. A row that comes in is
/// paired with the oldest waiting row of the other side that has its key (the target's newest row is tried
/// first). Both queues are then cut after the pair, and the rows that were cut off have no partner. Gives a
/// pair for each target row, in order. Linear in the number of rows; keys are small numbers.
std::vector<Pair> pair_in_step(const std::vector<std::uint32_t>& target_keys,
                               const std::vector<std::uint32_t>& golden_keys);

}  // namespace msprobe::pairing
