// SPDX-License-Identifier: Apache-2.0
// What to say where many rows stay without partner: how many, why most likely, and what would help.
#pragma once

#include <string>

#include "compare/matching/match.hpp"
#include "compare/result/result.hpp"

namespace msprobe::compare {

/// A line for the terminal; empty if few rows are without partner.
std::string advise(const RankResult& result, const MatchOptions& options);

}  // namespace msprobe::compare
