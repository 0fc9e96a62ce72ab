// SPDX-License-Identifier: Apache-2.0
// Writes tensors into files that PyTorch, NumPy and safetensors load. Elements are streamed, so a tensor of
// any size takes no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/output_file.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {

enum class OutputFormat : std::uint8_t { pt, npy, npz, safetensors, bin };

std::optional<OutputFormat> output_format_from_name(std::string_view name);
std::string_view extension(OutputFormat format);  // "pt", …, without a dot
/// Can one such file hold several tensors?
bool holds_many(OutputFormat format);

/// The type in which the container stores elements of `dtype`: the same type if the container has it, else
/// the narrowest one that holds every value. Quantized tensors are written as the integers they store.
/// Nothing if the container has no such type.
std::optional<tensor::DType> written_dtype(OutputFormat format, tensor::DType dtype);

struct TensorSpec {
  std::string name;  // its key in a file that holds several
  tensor::DType dtype = tensor::DType::float32;
  std::vector<std::int64_t> shape;
};

/// A file that is being written. For each index in order(), in that order: begin(), write() until the tensor
/// is complete, end(); then finish(). The caller commits the file.
class TensorWriter {
 public:
  virtual ~TensorWriter() = default;
  const std::vector<TensorSpec>& specs() const { return specs_; }
  /// Indices into specs(). A container may want the widest types first, for alignment.
  const std::vector<std::size_t>& order() const { return order_; }
  /// `crc`: the checksum of all bytes that will follow, if the caller knows it; some containers need it.
  virtual void begin(std::size_t index, std::optional<std::uint32_t> crc) = 0;
  void begin(std::size_t index) { begin(index, std::nullopt); }
  /// Whole elements of the spec's type, little-endian, in row-major order.
  virtual void write(std::span<const std::byte> bytes) = 0;
  virtual void end() = 0;
  virtual void finish() = 0;

 protected:
  explicit TensorWriter(std::vector<TensorSpec> specs);
  std::vector<TensorSpec> specs_;
  std::vector<std::size_t> order_;
};

/// The writer of a container. Each spec needs a type that written_dtype() returns. A `.pt` of one nameless
/// tensor is that tensor, any other a dict of tensors by name; `.npy` and `.bin` take exactly one. Names in
/// `.npz` and `.safetensors` must be unique, not empty and UTF-8. FormatError (naming the file) otherwise.
std::unique_ptr<TensorWriter> make_tensor_writer(OutputFormat format, OutputFile& file,
                                                 std::vector<TensorSpec> specs);

/// FormatError (naming `file`) unless a file of several tensors can hold the tensor under its name.
void check_spec(const TensorSpec& spec, const std::string& file);

/// Header of a `.npy` file with these elements in row-major order, as NumPy writes it.
std::string npy_header(tensor::DType dtype, const std::vector<std::int64_t>& shape);

/// Bytes of all elements. FormatError naming `file` if they cannot be counted in 63 bits.
std::uint64_t payload_size(const TensorSpec& spec, const std::string& file);

}  // namespace msprobe::formats
