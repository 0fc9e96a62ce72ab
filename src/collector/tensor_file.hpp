// SPDX-License-Identifier: Apache-2.0
// Files that hold one recorded tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/tensor_view.hpp"

namespace msprobe::collector {

/// Writes the elements to `<path>`, in the format of its ending: ".pt" or ".npy". Throws IoError and
/// FormatError. `crc`: the checksum of the element bytes in the file, if known. Returns that checksum.
std::uint32_t write_tensor_file(const std::string& path, const TensorView& view,
                                std::optional<std::uint32_t> crc = std::nullopt);

}  // namespace msprobe::collector
