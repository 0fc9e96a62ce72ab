// SPDX-License-Identifier: Apache-2.0
// What to say where many rows stay without partner: how many, why most likely, and what would help.
#pragma once

#include <string>
#include <vector>

#include "compare/matching/match.hpp"
#include "compare/result/result.hpp"

namespace msprobe::compare {

/// A line for the terminal; empty if few rows are without partner.
std::string advise(const RankResult& result, const MatchOptions& options);

/// Which entries of both sides have a partner, by number: rows of theirs are paired, or could only not be.
struct PairedEntries {
  std::vector<bool> target;
  std::vector<bool> golden;
};
PairedEntries paired_entries(const RankResult& result);

}  // namespace msprobe::compare
