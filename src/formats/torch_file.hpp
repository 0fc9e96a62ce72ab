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

/// A file whose pickle may hold anything; the tensors in it are made when they are asked for.
class TorchFile {
 public:
  explicit TorchFile(std::shared_ptr<const ByteSource> file, const PickleLimits& limits = {});

  const Pickle& pickle() const { return container_->pickle(); }
  /// Would Python have made a tensor of this value? (It may still be broken or of a type we do not read.)
  bool is_tensor(PickleRef ref) const;
  /// How many dimensions it would have; 0 if it is malformed.
  std::size_t rank(PickleRef ref) const;
  /// The call behind those that only wrap it, and the state that the wrapper around it has; nothing if it is
  /// malformed or no tensor.
  struct Core {
    PickleRef callable = kNoPickleRef;
    PickleRef args = kNoPickleRef;
    PickleRef state = kNoPickleRef;
  };
  std::optional<Core> core_of(PickleRef ref) const;
  /// Its storage and where it lies in it: the same for two names of one tensor, empty where that is not
  /// clear.
  std::string place(PickleRef ref) const;
  /// FormatError naming the file and the reason if `ref` is no tensor, or one that cannot be read.
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

/// The tensor of a file that holds exactly one. FormatError if its pickle calls anything that tensors do not
/// need.
StoredTensor open_torch_tensor(const std::shared_ptr<const ByteSource>& file);

}  // namespace msprobe::formats
