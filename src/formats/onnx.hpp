// SPDX-License-Identifier: Apache-2.0
// The initializers of an ONNX model, in the file itself or in other files in or below its folder. onnx.proto
// of https://github.com/onnx/onnx defines the form. Constants within nodes, sparse initializers and functions
// are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor_set.hpp"

namespace msprobe::formats {

class OnnxModel final : public TensorSet {
 public:
  /// Opens a file in or below the folder of the model, by its relative name.
  using OpenBeside = std::function<std::shared_ptr<const ByteSource>(const std::string&)>;

  /// FormatError naming the file and the reason if it is broken. The constructor reads only headers, so its
  /// memory is a small multiple of the names.
  OnnxModel(std::shared_ptr<const ByteSource> file, OpenBeside open_beside);

  std::size_t size() const override { return entries_.size(); }
  const std::string& name(std::size_t index) const override { return entries_.at(index).name; }
  /// FormatError also if its elements are outside the folder or in a file that is too short.
  StoredTensor tensor(std::size_t index) const override;

 private:
  struct OnnxEntry {
    std::string name;
    std::uint64_t type = 0;
    std::vector<std::int64_t> shape;
    std::uint64_t field = 0;  // the field that holds the elements; 0: no field does
    FileStretch data;
    bool several = false;  // the elements come in several pieces
    bool external = false;
    std::vector<std::pair<std::string, std::string>>
        location;  // key-value pairs that locate elements in another file
  };
  class Parser;

  std::shared_ptr<const ByteSource> external(const OnnxEntry& entry, std::uint64_t wanted) const;
  std::shared_ptr<const ByteSource> numbers(const OnnxEntry& entry, std::uint64_t count,
                                            std::size_t size) const;
  [[noreturn]] void fail(const OnnxEntry& entry, const std::string& reason) const;

  std::shared_ptr<const ByteSource> file_;
  OpenBeside open_beside_;
  std::vector<OnnxEntry> entries_;
};

/// Is it a complete message with a version and a graph, as in a model?
bool looks_like_onnx(const ByteSource& file);

}  // namespace msprobe::formats
