// SPDX-License-Identifier: Apache-2.0
// The writers that make_tensor_writer() chooses from, one file each.
#pragma once

#include "formats/tensor_writer.hpp"

namespace msprobe::formats {

std::unique_ptr<TensorWriter> make_torch_writer(OutputFile& file, std::vector<TensorSpec> specs);
std::unique_ptr<TensorWriter> make_npz_writer(OutputFile& file, std::vector<TensorSpec> specs);
std::unique_ptr<TensorWriter> make_safetensors_writer(OutputFile& file, std::vector<TensorSpec> specs);
/// A header, then the elements of all tensors and nothing between them.
class FlatWriter : public TensorWriter {
 public:
  FlatWriter(OutputFile& file, std::vector<TensorSpec> specs) : TensorWriter(std::move(specs)), file_(file) {}
  void begin(std::size_t index, std::optional<std::uint32_t> crc) override;
  void write(std::span<const std::byte> bytes) override;
  void end() override;
  void finish() override {}

 protected:
  OutputFile& file_;

 private:
  std::uint64_t left_ = 0;
};

/// FormatError unless all names are unique, not empty and UTF-8.
void check_names(const std::vector<TensorSpec>& specs, const std::string& file);

}  // namespace msprobe::formats
