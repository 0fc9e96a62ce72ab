// SPDX-License-Identifier: Apache-2.0
// Several sources or stored tensors as one: their concatenation, or their sum.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::formats {

/// The parts, one after the other; `name` is for messages.
std::shared_ptr<const ByteSource> join_bytes(const std::vector<std::shared_ptr<const ByteSource>>& parts,
                                             const std::string& name);

/// Concatenates the tensors along `axis`, counted without axes of length 1; along the last axis if there are
/// fewer. The function loads nothing, except for a tensor that is not contiguous: of such a tensor it loads
/// at most ElementReader::kMaxGather. FormatError if types or other axes differ.
StoredTensor join_tensors(const std::vector<StoredTensor>& parts, std::size_t axis);

/// Concatenates along an axis of the shapes as they are. With `chunks` each part consists of that many
/// pieces: the result has the first pieces of all parts, then the second ones.
StoredTensor concatenate(const std::vector<StoredTensor>& parts, std::size_t axis, std::size_t chunks = 1);

/// The sums of their elements, computed in double as they are read. FormatError if types or shapes differ.
StoredTensor add_tensors(const std::vector<StoredTensor>& terms);

}  // namespace msprobe::formats
