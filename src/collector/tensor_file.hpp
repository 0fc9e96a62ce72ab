// SPDX-License-Identifier: Apache-2.0
// Files that hold one recorded tensor.
#pragma once

#include <string>
#include <string_view>

#include "collector/tensor_view.hpp"

namespace msprobe::collector {

/// Writes the elements to `<path>`, whose end says how: ".pt" or ".npy". IoError, FormatError.
void write_tensor_file(const std::string& path, const TensorView& view);

}  // namespace msprobe::collector
