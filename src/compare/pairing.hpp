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

/// Writes the pairs as a data mapping that -dm reads: the golden row's name, N/A where there is none.
void write_data_mapping(const RankResult& result, const std::string& path);

/// Training against inference (--consistent_check); rows of both sides. FormatError for checksum dumps.
void pair_consistent_rows(RankResult& result, Backend backend, const PairingTraits& traits);

}  // namespace msprobe::compare
