// SPDX-License-Identifier: Apache-2.0
// What the Hugging Face storage writer of torch.distributed.checkpoint notes in the header of its safetensors
// files: where in its whole each of the tensors lies.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "checkpoint/parameter.hpp"
#include "formats/safetensors.hpp"

namespace msprobe::checkpoint {

using SavedOffsets = std::unordered_map<std::string, Shape>;

/// Nothing if the file has no such note; FormatError naming `path` if it is not what it should be.
std::optional<SavedOffsets> saved_offsets(const formats::SafetensorsFile& file, const std::string& path);

}  // namespace msprobe::checkpoint
