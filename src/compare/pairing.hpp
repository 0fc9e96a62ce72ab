// SPDX-License-Identifier: Apache-2.0
// Pairing the rows of one pair of ranks, and what there is to say of it.
#pragma once

#include <string>

#include "compare/matching/match.hpp"
#include "compare/result/result.hpp"

namespace msprobe::compare {

/// Gives `result` its rows, not judged yet. Throws what match() throws.
void pair_rows(RankResult& result, const MatchOptions& options, const PairingTraits& traits,
               const Rules& rules);

/// Training against inference (--consistent_check); rows of both sides. FormatError for checksum dumps.
void pair_consistent_rows(RankResult& result, Backend backend, const PairingTraits& traits);

}  // namespace msprobe::compare
