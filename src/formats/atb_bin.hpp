// SPDX-License-Identifier: Apache-2.0
// ATB's `.bin`: lines of `name=value` up to `$End`, then the bytes of one tensor.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "formats/stored_tensor.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// Opens a file by its name in the folder of the file being read. The name has no path separator.
using OpenBeside = std::function<std::shared_ptr<const ByteSource>(const std::string& name)>;

/// Finds the tensor in the file, or in the file that its `data` line names. FormatError for a malformed
/// header, an unknown type, a payload that does not fit the shape, an empty tensor, and for a link if
/// `open_beside` is empty.
StoredTensor open_atb_bin(const std::shared_ptr<const ByteSource>& file, const OpenBeside& open_beside = {});

}  // namespace msprobe::formats
