// SPDX-License-Identifier: Apache-2.0
// Values that ranks hold in parts, against what the other side has of them: are they copies, shards along an
// axis, or terms of a sum? Shapes, what the dump says of them, and the numbers themselves tell; names do not.
#pragma once

#include "comparison/result/result.hpp"

namespace msprobe::compare {

/// Before rows are paired by what entries do: items that are called alike on both sides get the shape of the
/// whole where their ranks' shapes make it up.
void guess_whole_shapes(RankResult& result);

/// Decides for each item of the result's joins, and gives the items that have a partner the statistics and
/// the shape of the whole. What cannot be put together, and copies that are not equal, are findings of the
/// rows, which there must be.
void settle_joins(RankResult& result);

}  // namespace msprobe::compare
