// SPDX-License-Identifier: Apache-2.0
// A tensor in a file: its type, its geometry, and the source of its bytes. Nothing is loaded until elements
// are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "support/byte_source.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {

/// Element (i0, i1, …) is element `offset + sum(i_k * strides[k])` of the storage. Readers guarantee: every
/// such element lies inside `storage`, numel fits 63 bits, no stride is negative, rank is at most 64.
struct StoredTensor {
  tensor::DType dtype = tensor::DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t offset = 0;            // in elements
  std::shared_ptr<const ByteSource> storage;
  bool big_endian = false;
  bool conjugate = false;  // a lazily conjugated view (PyTorch `conj` bit)
  bool negative = false;   // a lazily negated view (PyTorch `neg` bit)

  std::int64_t numel() const;
  bool is_contiguous() const;  // row-major without gaps; size-1 axes do not matter
};

/// Strides in elements of an array without gaps. An axis of length 0 counts as 1, as in PyTorch and NumPy.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape);

/// The size of all elements, each of which has `element` bytes. Nothing if the shape is negative or larger
/// than 63 bits can count, even where an axis of length 0 makes it empty.
std::optional<std::uint64_t> checked_size(const std::vector<std::int64_t>& shape, std::uint64_t element);

/// Reads the elements of a tensor in logical (row-major) order, piece by piece, as raw bytes in the machine's
/// byte order. The reader streams contiguous tensors; for others it keeps the bytes they span in memory, at
/// most `kMaxGather` (FormatError beyond). It applies `conjugate` and `negative`.
class ElementReader {
 public:
  static constexpr std::uint64_t kMaxGather = std::uint64_t{256} << 20;

  explicit ElementReader(const StoredTensor& tensor);
  ~ElementReader();
  ElementReader(const ElementReader&) = delete;
  ElementReader& operator=(const ElementReader&) = delete;

  /// Fills `out` (a whole number of elements, not more than remain) with the next elements.
  void read(std::span<std::byte> out);
  std::int64_t remaining() const;

  /// Bytes this reader keeps in memory besides the caller's buffer (0 for a streamed tensor).
  static std::uint64_t memory_need(const StoredTensor& tensor);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::formats
