// SPDX-License-Identifier: Apache-2.0
// Files that hold one recorded tensor.
#pragma once

#include <string>
#include <string_view>

#include "collector/tensor_view.hpp"

namespace msprobe::collector {

/// `name` as that of a file with `suffix` ("pt"): characters that the readers refuse are replaced, names that
/// are too long are cut; such names end in a number made of the whole, so that they stay different.
std::string file_name(std::string_view name, std::string_view suffix);

/// Writes the elements to `<path>`, whose end says how: ".pt" or ".npy". IoError, FormatError.
void write_tensor_file(const std::string& path, const TensorView& view);

}  // namespace msprobe::collector
