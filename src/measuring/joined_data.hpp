// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of values that ranks hold in parts.
#pragma once

#include <cstddef>

#include "formats/stored_tensor.hpp"
#include "pairing/joins.hpp"

namespace msprobe::measuring {

/// The tensor of one rank. FormatError, IoError.
formats::StoredTensor open_part(const pairing::Joins& joins, const pairing::RankPart& part);

/// The whole value by the decision about its parts; for copies the tensor of the first rank. `chunks`: the
/// number of pieces in each shard, for weights that were fused before they were split. FormatError, IoError.
formats::StoredTensor open_joined(const pairing::Joins& joins, std::size_t item, std::size_t chunks = 1);

/// Do ranks that should hold the same elements hold them, apart from rounding? Reads all of them.
bool copies_agree(const pairing::Joins& joins, std::size_t item);

/// The largest distance between copies, relative to their size.
double tolerance_of_copies(std::string_view dtype);

}  // namespace msprobe::measuring
