// SPDX-License-Identifier: Apache-2.0
// Counts how many tensors of a pair of ranks were compared. A tensor counts as compared if it has a partner,
// and one of its numbers or its checksum was compared with the partner's.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/side.hpp"
#include "measuring/measured_rank.hpp"
#include "support/coverage.hpp"

namespace msprobe::measuring {

/// Are they two tensors with elements of which no statistic, checksum or element could be compared? NaN on
/// both sides is not equality. Dumps of the structure are compared by other data.
bool is_unknown(const MeasuredRank& rank, std::size_t row);
/// The same for two items, judged by their statistics alone.
bool is_unknown(const MeasuredRank& rank, const dump::Item& item, const dump::Item& partner);

/// `golden_item`: the partners of the target's items, or kNone. A tensor that only one side has is explained
/// in three cases: a compared tensor of its side has the same content; it is between two compared calls and
/// not in a module without any compared tensor; or it is an input of a call whose outputs were compared.
/// `entries`: only the target's entries before this number count.
Coverage coverage_of(const MeasuredRank& rank, const std::vector<std::uint32_t>& golden_item,
                     std::uint32_t entries = UINT32_MAX);
/// The partner of each of the target's items in the rows.
std::vector<std::uint32_t> partners_in_rows(const MeasuredRank& rank);

}  // namespace msprobe::measuring
