// SPDX-License-Identifier: Apache-2.0
// Several stored tensors as one: one behind the other, or their sum.
#pragma once

#include <cstddef>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::formats {

/// Puts the tensors one behind the other along `axis`, counted without axes of length 1; along the last one
/// if there are fewer. Nothing is loaded, unless a tensor does not lie in one piece: then at most
/// ElementReader::kMaxGather of it. FormatError if types or other axes differ.
StoredTensor join_tensors(const std::vector<StoredTensor>& parts, std::size_t axis);

/// The same along an axis of their shapes as they are. With `chunks` each part holds as many pieces: the
/// first pieces of all parts come first, then the second ones.
StoredTensor concatenate(const std::vector<StoredTensor>& parts, std::size_t axis, std::size_t chunks = 1);

/// The sums of their elements, computed in double as they are read. FormatError if types or shapes differ.
StoredTensor add_tensors(const std::vector<StoredTensor>& terms);

}  // namespace msprobe::formats
