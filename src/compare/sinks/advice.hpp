// SPDX-License-Identifier: Apache-2.0
// What to say where many rows stay without partner: how many, why most likely, and what would help.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/imports.hpp"
#include "pairing/match.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

struct Advice {
  enum class Cause {
    levels,        // of the dumps, which have nothing in common
    operations,    // are called otherwise by the other framework
    modules,       // likewise
    call_numbers,  // differ, and nothing else does
    root,          // of the modules is another one
    part_of_mix,   // one dump has entries of both levels
    nothing_left,  // on the golden side
    names,         // are not there
  };
  Cause cause = Cause::names;
  std::string_view option;  // that helps; empty: none does
  std::string target;       // the levels, or the roots
  std::string golden;
  std::size_t unmatched = 0;
  std::size_t rows = 0;
};

/// Nothing if few rows are without partner.
std::optional<Advice> find_advice(const RankResult& result, const MatchOptions& options);

/// The same as a line for the terminal, or empty.
std::string advise(const RankResult& result, const MatchOptions& options);

/// Which entries of both sides have a partner, by number: rows of theirs are paired, or could only not be.
struct PairedEntries {
  std::vector<bool> target;
  std::vector<bool> golden;
};
PairedEntries paired_entries(const RankResult& result);

}  // namespace msprobe::compare
