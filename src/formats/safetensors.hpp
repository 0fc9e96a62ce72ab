// SPDX-License-Identifier: Apache-2.0
// `.safetensors`: a JSON header and, without holes, the bytes of all tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensor_set.hpp"

namespace msprobe::formats {

/// "BF16"; empty for a type that the format does not have.
std::string_view safetensors_name(tensor::DType dtype);

class SafetensorsFile final : public TensorSet {
 public:
  /// The limit of the format's own library; a larger header is refused before it is read.
  static constexpr std::uint64_t kMaxHeader = 100'000'000;

  /// FormatError naming the file and the reason: a header that is longer than the file or the cap, broken
  /// JSON, duplicate names or keys, offsets that overlap, leave holes, leave the file or do not fit shape and
  /// type. Memory: a small multiple of the header.
  explicit SafetensorsFile(std::shared_ptr<const ByteSource> file);

  /// In the order of their bytes.
  std::size_t size() const override { return entries_.size(); }
  const std::string& name(std::size_t index) const override { return entries_.at(index).name; }
  /// FormatError also for a type of less than a byte and for one we do not know.
  StoredTensor tensor(std::size_t index) const override;

  /// The type as the file spells it, e.g. "BF16", and the shape: known for every tensor.
  const std::string& dtype_name(std::size_t index) const { return entries_.at(index).dtype; }
  const std::vector<std::int64_t>& shape(std::size_t index) const { return entries_.at(index).shape; }

  /// `__metadata__`, in file order.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  class HeaderHandler;
  struct SafetensorsEntry {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  // in the data, which starts at data_begin_
    std::uint64_t end = 0;
  };

  [[noreturn]] void fail(const std::string& reason) const;
  void check_size(const SafetensorsEntry& entry) const;
  void check_names() const;
  void check_places();

  std::shared_ptr<const ByteSource> file_;
  std::uint64_t data_begin_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// Does the file begin like a safetensors file, but end within its header?
bool ends_within_header(const ByteSource& file);

/// Could this be a safetensors file, by its first nine bytes?
bool looks_like_safetensors(const ByteSource& file);

}  // namespace msprobe::formats
