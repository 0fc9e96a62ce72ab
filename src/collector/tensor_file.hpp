// SPDX-License-Identifier: Apache-2.0
// Files that hold one recorded tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collector/tensor_view.hpp"

namespace msprobe::collector {

/// Writes the elements to `<path>`, whose end says how: ".pt" or ".npy". IoError, FormatError. `crc`: of the
/// elements' bytes as they lie there, if it is known. Returns it.
std::uint32_t write_tensor_file(const std::string& path, const TensorView& view,
                                std::optional<std::uint32_t> crc = std::nullopt);

}  // namespace msprobe::collector
