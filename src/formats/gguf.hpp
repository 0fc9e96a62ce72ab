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
  /// FormatError naming the file and the reason: an unsupported version or byte order, a count, a length or
  /// an offset beyond the end of the file, a duplicate name. Memory: a small multiple of the names.
  explicit GgufFile(std::shared_ptr<const ByteSource> file);

  /// In the order of the file.
  std::size_t size() const override { return entries_.size(); }
  const std::string& name(std::size_t index) const override { return entries_.at(index).name; }
  /// Returns a packed tensor as float32; each block is unpacked when it is read. FormatError for a type
  /// without a reader.
  StoredTensor tensor(std::size_t index) const override;
  std::optional<StoredTensor> half_step(std::size_t index) const override;

  /// The name of the type in ggml, e.g. "Q4_K", and the size in the file in bytes, 0 if the type is unknown.
  /// The shape has the outermost axis first.
  std::string type_name(std::size_t index) const;
  /// llama.cpp searches for the best scales of all packed types except Q8_0, whose scale follows from the
  /// largest element.
  bool has_searched_scales(std::size_t index) const;
  std::uint64_t bytes(std::size_t index) const { return entries_.at(index).bytes; }
  const std::vector<std::int64_t>& shape(std::size_t index) const { return entries_.at(index).shape; }

  /// Is every byte of the file a part of its header, of a tensor, or a zero that fills up to a multiple of
  /// the alignment?
  bool is_gapless() const;

  /// Metadata about the model and its types: the keys of `general` and the numbers of heads.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  /// "llama"; empty if the metadata do not name it.
  const std::string& architecture() const { return architecture_; }
  /// A whole number at the key "ARCHITECTURE.key", such as "attention.head_count".
  std::optional<std::int64_t> number(const std::string& key) const;

  /// The texts of the metadata, including chat templates. Texts inside lists (vocabularies) are left out.
  struct MetadataText {
    std::string key;
    std::shared_ptr<const ByteSource> value;
  };
  const std::vector<MetadataText>& texts() const { return texts_; }

 private:
  struct GgufEntry {
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
  std::vector<GgufEntry> entries_;
  std::uint64_t header_end_ = 0;
  std::uint64_t alignment_ = 0;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<std::pair<std::string, std::int64_t>> numbers_;
  std::vector<MetadataText> texts_;
  std::string architecture_;
};

bool looks_like_gguf(const ByteSource& file);

}  // namespace msprobe::formats
