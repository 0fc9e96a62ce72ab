// SPDX-License-Identifier: Apache-2.0
// GGUF, the files of llama.cpp and other programs on ggml: metadata, a list of tensors, and their elements.
// Specified among the documents of https://github.com/ggml-org/ggml.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor_set.hpp"

namespace msprobe::formats {

class GgufFile final : public TensorSet {
 public:
  /// FormatError naming the file and the reason: a version or a byte order that is not read, a count, a
  /// length or an offset that the file has no room for, a name twice. Memory: a small multiple of the names.
  explicit GgufFile(std::shared_ptr<const ByteSource> file);

  /// In the order of the file.
  std::size_t size() const override { return entries_.size(); }
  const std::string& name(std::size_t index) const override { return entries_.at(index).name; }
  /// Of a packed type as float32, unpacked where it is read. FormatError for a type without a reader.
  StoredTensor tensor(std::size_t index) const override;
  std::optional<StoredTensor> half_step(std::size_t index) const override;

  /// The type as ggml calls it, e.g. "Q4_K", and the bytes in the file; these are 0 where the type is not
  /// known. The shape has the outermost axis first.
  std::string type_name(std::size_t index) const;
  /// llama.cpp searches for the scales of all its packed types but Q8_0, whose largest element gives it.
  bool has_searched_scales(std::size_t index) const;
  std::uint64_t bytes(std::size_t index) const { return entries_.at(index).bytes; }
  const std::vector<std::int64_t>& shape(std::size_t index) const { return entries_.at(index).shape; }

  /// Is every byte of the file a part of its header, of a tensor, or a zero that fills up to a multiple of
  /// the alignment?
  bool is_gapless() const;

  /// What the metadata say of the model and its types: keys of `general` and the numbers of heads.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  /// "llama"; empty if it is not told.
  const std::string& architecture() const { return architecture_; }
  /// A whole number behind the name of the architecture: "attention.head_count".
  std::optional<std::int64_t> number(const std::string& key) const;

  /// The texts of the metadata, templates among them; what is in lists (vocabularies) is left out.
  struct Text {
    std::string key;
    std::shared_ptr<const ByteSource> value;
  };
  const std::vector<Text>& texts() const { return texts_; }

 private:
  struct Entry {
    std::string name;
    std::uint32_t type = 0;
    std::vector<std::int64_t> shape;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t bytes = 0;
    std::string problem;
  };
  class Parser;

  StoredTensor unpacked(std::size_t index, bool half_steps) const;

  std::shared_ptr<const ByteSource> file_;
  std::vector<Entry> entries_;
  std::uint64_t header_end_ = 0;
  std::uint64_t alignment_ = 0;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<std::pair<std::string, std::int64_t>> numbers_;
  std::vector<Text> texts_;
  std::string architecture_;
};

bool looks_like_gguf(const ByteSource& file);

}  // namespace msprobe::formats
