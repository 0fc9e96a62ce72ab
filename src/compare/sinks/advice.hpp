// SPDX-License-Identifier: Apache-2.0
// Advice for many rows without a partner: how many they are, the most likely reason, and what would help.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pairing/match.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

struct Advice {
  enum class Cause {
    levels,        // the levels of the dumps have nothing in common
    operations,    // the other framework names operations differently
    modules,       // the other framework names modules differently
    call_numbers,  // nothing but the call numbers differs
    root,          // the root of the modules has another name
    part_of_mix,   // one dump has entries of both levels
    nothing_left,  // the golden side has no entries left
    names,         // the names do not exist there
  };
  Cause cause = Cause::names;
  std::string_view option;  // that helps; may be empty
  std::string target;       // the levels, or the roots
  std::string golden;
  std::size_t unmatched = 0;
  std::size_t rows = 0;
};

/// Returns nothing if few rows lack a partner.
std::optional<Advice> find_advice(const verdict::RankResult& result, const pairing::MatchOptions& options);

/// The same as a line for the terminal; may be empty.
std::string advise(const verdict::RankResult& result, const pairing::MatchOptions& options);

/// Marks the entries of both sides, by number, that have a partner, even if some of their rows could not be
/// paired.
struct PairedEntries {
  std::vector<bool> target;
  std::vector<bool> golden;
};
PairedEntries paired_entries(const verdict::RankResult& result);

}  // namespace msprobe::compare
