// SPDX-License-Identifier: Apache-2.0
// The writers behind make_tensor_writer(), one file each.
#pragma once

#include "formats/tensor_writer.hpp"

namespace msprobe::formats {

std::unique_ptr<TensorWriter> make_torch_writer(OutputFile& file, std::vector<TensorSpec> specs);
std::unique_ptr<TensorWriter> make_npz_writer(OutputFile& file, std::vector<TensorSpec> specs);
std::unique_ptr<TensorWriter> make_safetensors_writer(OutputFile& file, std::vector<TensorSpec> specs);
/// `.npy`, and with an empty header raw bytes.
std::unique_ptr<TensorWriter> make_flat_writer(OutputFile& file, std::vector<TensorSpec> specs,
                                               std::string header);

/// FormatError unless all names are unique, not empty and UTF-8.
void check_names(const std::vector<TensorSpec>& specs, const std::string& file);

}  // namespace msprobe::formats
