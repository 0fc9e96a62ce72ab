// SPDX-License-Identifier: Apache-2.0
// Decides how ranks hold a value in parts, by comparison with the other side: copies, shards along an axis,
// or terms of a sum. The decision uses shapes, the dump's own information, and the numbers; never names.
#pragma once

#include <cstdint>

#include "measuring/measured_rank.hpp"

namespace msprobe::measuring {

/// Call this before rows are paired by the entries' operations. Items with the same name on both sides get
/// the shape of the whole if their ranks' shapes form it.
void guess_whole_shapes(pairing::PairedRank& result);

/// FormatError if a rank of one side has no value to compare, or if both sides are split in the same way and
/// one lacks ranks of the other: the remaining parts are not the whole.
void refuse_missing_ranks(MeasuredRank& result);

/// Decides for each item of the rank's joins, and gives items with a partner the statistics and the shape of
/// the whole. Needs the rows; marks those whose parts cannot be joined or whose copies differ.
void settle_joins(MeasuredRank& result);

/// Does one of the merged ranks have a number of that tensor, and another one none? `joins` may be null.
bool is_partly_known(const pairing::Joins* joins, std::uint32_t item);

}  // namespace msprobe::measuring
