// SPDX-License-Identifier: Apache-2.0
// The tensors of a PyTorch file (`.pt`, zip or legacy), found without running any of it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/pickle.hpp"
#include "formats/stored_tensor.hpp"
#include "formats/torch_container.hpp"
#include "formats/unpickler.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

/// A file whose pickle may hold anything. Its tensors are made on request.
class TorchFile {
 public:
  explicit TorchFile(std::shared_ptr<const ByteSource> file, const PickleLimits& limits = {});

  const Pickle& pickle() const { return container_->pickle(); }
  /// Would Python have made a tensor of this value? (It may still be broken or of an unsupported type.)
  bool is_tensor(PickleRef ref) const;
  /// The number of dimensions of the tensor; 0 if it is malformed.
  std::size_t rank(PickleRef ref) const;
  /// The innermost rebuild call inside the calls that only wrap it, and the state of the wrapper around it;
  /// nothing if the value is malformed or not a tensor.
  struct Core {
    PickleRef callable = kNoPickleRef;
    PickleRef args = kNoPickleRef;
    PickleRef state = kNoPickleRef;
  };
  std::optional<Core> core_of(PickleRef ref) const;
  /// Identifies the storage and the position in it: equal for two names of one tensor, empty if it cannot be
  /// determined.
  std::string place(PickleRef ref) const;
  /// FormatError naming the file and the reason if `ref` is not a tensor, or a tensor that cannot be read.
  StoredTensor tensor(PickleRef ref) const;

 private:
  [[noreturn]] void fail(const std::string& reason) const;
  StoredTensor tensor(PickleRef callable, PickleRef args, int depth) const;
  StoredTensor geometry(std::span<const PickleRef> args, std::optional<tensor::DType> dtype) const;
  void apply_metadata(PickleRef metadata, StoredTensor& tensor) const;
  std::vector<std::int64_t> integers(PickleRef ref) const;
  void check(const StoredTensor& tensor) const;

  std::shared_ptr<const ByteSource> file_;
  std::unique_ptr<TorchContainer> container_;
};

/// The tensor of a file that holds exactly one. FormatError if its pickle calls anything that a tensor does
/// not need.
StoredTensor open_torch_tensor(const std::shared_ptr<const ByteSource>& file);

}  // namespace msprobe::formats
