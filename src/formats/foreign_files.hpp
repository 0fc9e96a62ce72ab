// SPDX-License-Identifier: Apache-2.0
// Recognizes files that hold tensors, or archives of them, in formats that msprobe does not read. Their first
// bytes identify them, so that a message can name the format.
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

/// Says why msprobe refuses such a file, and what to do: "an HDF5 file, which is not read".
std::string foreign_reason(const ByteSource& file, const std::string& format);

/// The same for a zip archive that neither PyTorch nor NumPy wrote: Keras, an exported program, a packed
/// checkpoint. FormatError if it is broken.
std::string foreign_zip_reason(const std::shared_ptr<const ByteSource>& file);

}  // namespace msprobe::formats
