// SPDX-License-Identifier: Apache-2.0
// Values that ranks hold in parts, against what the other side has of them: are they copies, shards along an
// axis, or terms of a sum? Shapes, what the dump says of them, and the numbers themselves decide; names do
// not.
#pragma once

#include <cstdint>

#include "measuring/imports.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::measuring {

/// Before rows are paired by what entries do: items that are called alike on both sides get the shape of the
/// whole where their ranks' shapes make it up.
void guess_whole_shapes(PairedRank& result);

/// FormatError where one of a side's ranks has no value to compare, or where a side lacks ranks of the other
/// although both are split in one way: what is left is not the whole.
void refuse_missing_ranks(MeasuredRank& result);

/// Decides for each item of the rank's joins, and gives the items that have a partner the statistics and the
/// shape of the whole. Marks the rows, which there must be, whose parts cannot be put together or whose
/// copies are not equal.
void settle_joins(MeasuredRank& result);

/// Has one of the merged ranks a number of that tensor, and another none? `joins`: may be null.
bool is_partly_known(const Joins* joins, std::uint32_t item);

}  // namespace msprobe::measuring
