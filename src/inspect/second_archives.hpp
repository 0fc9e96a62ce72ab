// SPDX-License-Identifier: Apache-2.0
// Archives that a file is besides what its first bytes say: a tar archive is known by a sum over the first
// 512 bytes, a zip archive by its last ones.
#pragma once

#include <memory>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// PyTorch takes a file that is no zip archive for a tar archive first.
bool is_tar(const ByteSource& file);

/// The zip archive that Python's zipfile finds at the end of the file; nullptr if there is none.
std::shared_ptr<const ByteSource> appended_zip(const std::shared_ptr<const ByteSource>& file);

/// The zip archives, one right behind the other, that make up the whole file, as in the `.distcp` files of
/// torch.distributed.checkpoint; empty if they do not, or if there are more than a million.
std::vector<std::shared_ptr<const ByteSource>> consecutive_zips(
    const std::shared_ptr<const ByteSource>& file);

}  // namespace msprobe::inspect
