// SPDX-License-Identifier: Apache-2.0
// Files of flax.serialization (`flax_model.msgpack`): maps of MessagePack with arrays of NumPy as its
// extension 1. https://github.com/msgpack/msgpack (spec.md), flax/serialization.py of
// https://github.com/google/flax.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/tensor_set.hpp"

namespace msprobe::formats {

class FlaxFile final : public TensorSet {
 public:
  /// FormatError naming the file and the reason if it is broken. The constructor reads only headers, so its
  /// memory is a small multiple of the names.
  explicit FlaxFile(std::shared_ptr<const ByteSource> file);

  /// The name is the path of keys that leads to an array, joined by dots. The order is that of the file.
  std::size_t size() const override { return entries_.size(); }
  const std::string& name(std::size_t index) const override { return entries_.at(index).name; }
  StoredTensor tensor(std::size_t index) const override;

 private:
  struct FlaxArray {
    std::string type;
    std::vector<std::int64_t> shape;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  struct FlaxEntry {
    std::string name;
    std::vector<FlaxArray> parts;  // Flax cuts a large array into flat ones
    std::vector<std::int64_t> shape;
  };
  class Parser;

  StoredTensor read(const FlaxEntry& entry, const FlaxArray& array) const;

  std::shared_ptr<const ByteSource> file_;
  std::vector<FlaxEntry> entries_;
};

/// Does the first key of each map lead to an array?
bool looks_like_flax(const ByteSource& file);

}  // namespace msprobe::formats
