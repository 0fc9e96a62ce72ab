// SPDX-License-Identifier: Apache-2.0
// Several stored tensors as one.
#pragma once

#include <cstddef>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::formats {

/// Puts the tensors one behind the other along `axis`, counted without axes of length 1; along the last one
/// if there are fewer. Nothing is loaded, unless a tensor does not lie in one piece: then at most
/// ElementReader::kMaxGather of it. FormatError if types or other axes differ.
StoredTensor join_tensors(const std::vector<StoredTensor>& parts, std::size_t axis);

}  // namespace msprobe::formats
