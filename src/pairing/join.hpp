// SPDX-License-Identifier: Apache-2.0
// How rows find each other by their keys: a way of pairing is a way of making keys for the target's rows.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pairing/matching.hpp"

namespace msprobe::pairing {

/// Keys of one side: an item's key is that of its entry and what its own name adds.
class EntryKeys {
 public:
  /// What an entry is called on the other side; the same text for one that has its name there too.
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

/// A row's key, and among what it is looked up.
struct Key {
  enum class Among { keys, names, nothing };  // the golden keys; the golden row names as they stand
  std::string_view text;
  Among among = Among::keys;
};

/// Makes the keys of the target's rows.
struct TargetKeys {
  /// Called by several threads.
  std::function<Key(const Item& item, std::string& buffer)> of;
  /// Does the golden side have this entry's partner? For the message of a row without one.
  std::function<std::string_view(std::uint32_t api)> of_entry;
};

/// Rows with equal keys are paired, each with each where keys repeat; FormatError if that would multiply the
/// rows without bound.
Matching join(const Side& target, const TargetKeys& target_keys, const EntryKeys& golden_keys,
              const Rules& rules, DtypeCheck check);

/// Pairs found in another way: the same dtype check, and the same account of what is left.
Matching finish_pairs(const Side& target, const Side& golden, std::vector<Pair> pairs, const Rules& rules,
                      DtypeCheck check);

// Fuzzy match (docs/pairing.md, "-fm"): rows of one name but for the call number, in order of execution.

/// A key that equals nothing.
inline constexpr std::uint32_t kNoKey = UINT32_MAX;

/// Two queues are filled in step, one row of each side at a time. A row that comes in is paired with the
/// oldest waiting row of the other side that has its key (the target's newest row is tried first), and both
/// queues are cut behind the pair; what was cut off has no partner. Gives a pair for each target row, in
/// order. Linear in the number of rows; keys are small numbers.
std::vector<Pair> pair_in_step(const std::vector<std::uint32_t>& target_keys,
                               const std::vector<std::uint32_t>& golden_keys);

}  // namespace msprobe::pairing
