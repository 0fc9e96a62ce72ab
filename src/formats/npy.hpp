// SPDX-License-Identifier: Apache-2.0
// NumPy's `.npy`, versions 1.0 to 3.0.
#pragma once

#include <memory>

#include "formats/stored_tensor.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// Finds the array in the file. Kinds b, i, u, f, c of either byte order, C or Fortran order, and 2-byte void
/// as bfloat16. FormatError for object arrays (they carry a pickle), for structured, text and date types, and
/// for a file whose size does not fit its header.
StoredTensor open_npy(std::shared_ptr<const ByteSource> file);

/// True if the file consists of a header as NumPy writes it, followed by exactly as many bytes as the header
/// says, and the elements are numbers, texts, dates, raw bytes or records of these. Arrays of objects return
/// false, because they carry a pickle.
bool is_plain_npy(const ByteSource& file);

}  // namespace msprobe::formats
