// SPDX-License-Identifier: Apache-2.0
// Files that hold tensors, or archives of them, in formats that have no reader here: known by their first
// bytes, so that a message can say what they are.
#pragma once

#include <memory>
#include <string>

#include "support/byte_source.hpp"

namespace msprobe::formats {

/// "HDF5", "gzip", "tar"; "Git LFS" for the pointer that Git leaves in the place of a large file.
/// Empty for everything else.
std::string foreign_format(const ByteSource& file);

/// Is it a packed form, which some loaders unpack by themselves?
bool is_packed_format(const std::string& format);

/// Why such a file is refused, and what helps: "an HDF5 file, which is not read".
std::string foreign_reason(const ByteSource& file, const std::string& format);

/// The same of a zip archive that is none of PyTorch or NumPy: Keras, an exported program, a packed
/// checkpoint. FormatError if it is broken.
std::string foreign_zip_reason(const std::shared_ptr<const ByteSource>& file);

}  // namespace msprobe::formats
