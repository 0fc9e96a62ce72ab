// SPDX-License-Identifier: Apache-2.0
// The tensors of a file that may hold many, in any container.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/stored_tensor.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// A stretch of a file.
struct FileStretch {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Tensors are opened one at a time, so that one that is broken or of a type we do not read hides no other,
/// and so that at most one compressed member is in memory.
class TensorSet {
 public:
  virtual ~TensorSet() = default;
  virtual std::size_t size() const = 0;
  /// The name in the file: bytes of any kind. Empty if the file is one tensor without a name.
  virtual const std::string& name(std::size_t index) const = 0;
  /// FormatError naming the file and the reason if this tensor cannot be read.
  virtual StoredTensor tensor(std::size_t index) const = 0;
  /// Tensors of one place are one tensor under several names. Empty: not known.
  virtual std::string place(std::size_t) const { return {}; }
  /// The largest distance between an element and the number that was rounded to it, as a tensor of the same
  /// shape. Only for a tensor that is packed more coarsely than its type; nothing for all others.
  virtual std::optional<StoredTensor> half_step(std::size_t) const { return {}; }
};

enum class Container {
  npy,
  npz,
  safetensors,
  torch_zip,
  torch_legacy,  // or another pickle of protocol 2 and later: only reading it shows which
  atb_bin,
  adump,
  mindspore,
  gguf,
  onnx,
  flax,
  torchscript,
  other_zip,
  unknown,
};

/// "PyTorch zip", "NumPy npz": for people.
std::string_view container_name(Container container);

/// Looks at the first bytes, never at the file's name; FormatError for a zip archive that is broken.
Container container_of(const std::shared_ptr<const ByteSource>& file);

/// FormatError naming the file for a container that holds no tensors, and for a file that is broken as a
/// whole.
std::unique_ptr<TensorSet> open_tensors(std::shared_ptr<const ByteSource> file);

}  // namespace msprobe::formats
