// SPDX-License-Identifier: Apache-2.0
// The tensors of values that ranks hold in parts.
#pragma once

#include <cstddef>

#include "formats/stored_tensor.hpp"
#include "measuring/imports.hpp"
#include "pairing/joins.hpp"

namespace msprobe::measuring {

/// What one rank has. FormatError, IoError.
formats::StoredTensor open_part(const Joins& joins, const Part& part);

/// The whole as it was decided; of copies that of the first rank. `chunks`: pieces that each shard holds, as
/// of weights that were fused before they were split. FormatError, IoError.
formats::StoredTensor open_joined(const Joins& joins, std::size_t item, std::size_t chunks = 1);

/// Do ranks that should hold the same elements do so, but for rounding? Reads them all.
bool copies_agree(const Joins& joins, std::size_t item);

/// How far copies may be apart, relative to their size.
double tolerance_of_copies(std::string_view dtype);

}  // namespace msprobe::measuring
