// SPDX-License-Identifier: Apache-2.0
// MindSpore's `.ckpt`: a protobuf message with one value a parameter, or several in a row for a large one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/tensor_set.hpp"

namespace msprobe::formats {

class MindSporeCkpt final : public TensorSet {
 public:
  /// FormatError naming the file and the reason if it is broken or no such file. Only headers are read:
  /// memory is a small multiple of the names and the number of values.
  explicit MindSporeCkpt(std::shared_ptr<const ByteSource> file);

  /// In the order of the file; values that are not tensors (text) are left out.
  std::size_t size() const override { return entries_.size(); }
  const std::string& name(std::size_t index) const override { return entries_.at(index).name; }
  StoredTensor tensor(std::size_t index) const override;

 private:
  struct MindSporeEntry {
    std::string name;
    std::string type;
    std::vector<std::int64_t> shape;
    std::vector<FileStretch> parts;  // end to end they are the elements
    std::string problem;
  };
  class Parser;

  std::shared_ptr<const ByteSource> file_;
  std::vector<MindSporeEntry> entries_;
};

/// Could this be one, by its first bytes: a value whose first field is a name that fits into it?
bool looks_like_mindspore_ckpt(const ByteSource& file);

}  // namespace msprobe::formats
