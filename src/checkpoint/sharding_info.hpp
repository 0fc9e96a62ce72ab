// SPDX-License-Identifier: Apache-2.0
// The note that the Hugging Face storage writer of torch.distributed.checkpoint puts into the header of its
// safetensors files: the place of each tensor in its whole.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "checkpoint/parameter.hpp"
#include "formats/safetensors.hpp"

namespace msprobe::checkpoint {

using SavedOffsets = std::unordered_map<std::string, Shape>;

/// Nothing if the file has no such note; throws FormatError with `path` if the note is malformed.
std::optional<SavedOffsets> saved_offsets(const formats::SafetensorsFile& file, const std::string& path);

}  // namespace msprobe::checkpoint
