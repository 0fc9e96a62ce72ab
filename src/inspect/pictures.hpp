// SPDX-License-Identifier: Apache-2.0
// PNG, JPEG, GIF and WebP, followed from block to block to their end.
#pragma once

#include <string>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// "a PNG picture" by its first bytes; empty for other files.
std::string picture_kind(const ByteSource& file);

/// Does it consist of the blocks of its format, and nothing before, between or after them?
bool is_whole_picture(const ByteSource& file);

}  // namespace msprobe::inspect
