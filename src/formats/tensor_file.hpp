// SPDX-License-Identifier: Apache-2.0
// Opens the single tensor of a dump file, in any container.
#pragma once

#include <memory>

#include "formats/stored_tensor.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// Looks at the first bytes: `.npy`, `.npz`, `.safetensors`, zip `.pt`, legacy `.pt`. FormatError (naming the
/// file) for anything else, for a file that is broken, and for one that does not hold exactly one tensor.
StoredTensor open_tensor(std::shared_ptr<const ByteSource> file);

}  // namespace msprobe::formats
