// SPDX-License-Identifier: Apache-2.0
// Detects archives that a file is in addition to the format of its first bytes: a tar archive has a checksum
// over the first 512 bytes, a zip archive ends with a record that locates its directory.
#pragma once

#include <memory>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// PyTorch tries a file that is not a zip archive as a tar archive first.
bool is_tar(const ByteSource& file);

/// The zip archive that Python's zipfile finds at the end of the file; nullptr if it finds none.
std::shared_ptr<const ByteSource> appended_zip(const std::shared_ptr<const ByteSource>& file);

/// The zip archives that make up the whole file, without gaps, as in the `.distcp` files of
/// torch.distributed.checkpoint; empty if the file has other content, or more than a million archives.
std::vector<std::shared_ptr<const ByteSource>> consecutive_zips(
    const std::shared_ptr<const ByteSource>& file);

}  // namespace msprobe::inspect
