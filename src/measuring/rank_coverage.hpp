// SPDX-License-Identifier: Apache-2.0
// How many tensors of a pair of ranks were compared. A tensor counts as compared if it has a partner, and a
// number or checksum of it was compared with the partner's.
#pragma once

#include <cstdint>
#include <vector>

#include "measuring/measured_rank.hpp"
#include "support/coverage.hpp"

namespace msprobe::measuring {

/// Two tensors with elements of which no statistic, checksum or element could be compared. NaN on both sides
/// is not equality. Dumps of the structure are compared by other things.
bool is_unknown(const MeasuredRank& rank, std::size_t row);
/// The same of two items by their statistics alone.
bool is_unknown(const MeasuredRank& rank, const Item& item, const Item& partner);

/// `golden_item`: the partners of the target's items, or kNone. A tensor of one side alone is explained if
/// its side has the same content in a tensor that was compared, or if it stands between two calls that were
/// compared and in no module of which nothing was, or if it is an input of a call whose outputs were.
/// `entries`: the target's entries before this number count.
Coverage coverage_of(const MeasuredRank& rank, const std::vector<std::uint32_t>& golden_item,
                     std::uint32_t entries = UINT32_MAX);
/// The partners that the rows give the target's items.
std::vector<std::uint32_t> partners_in_rows(const MeasuredRank& rank);

}  // namespace msprobe::measuring
