// SPDX-License-Identifier: Apache-2.0
// The raw content of a file of PyTorch's save(): one pickle and the storages it refers to. The file is either
// a zip archive (1.6 and later) or the older chain of pickles followed by raw bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/pickle.hpp"
#include "formats/unpickler.hpp"
#include "support/byte_source.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {

/// The persistent id of a storage.
struct TorchStorageId {
  std::string class_name;              // "torch.FloatStorage"
  std::optional<tensor::DType> dtype;  // the element type of the class; nothing for an untyped storage
  std::string key;
  std::uint64_t bytes = 0;        // of the whole storage
  std::uint64_t view_offset = 0;  // where the part begins that the id refers to, in bytes
  std::uint64_t view_bytes = 0;
};

/// Decodes the id of a persistent value. FormatError naming `file` for anything that is not a storage of a
/// type we know.
TorchStorageId read_storage_id(const Pickle& pickle, PickleRef persistent, const std::string& file);

class TorchContainer {
 public:
  virtual ~TorchContainer() = default;
  virtual const Pickle& pickle() const = 0;
  virtual bool big_endian() const = 0;
  /// The bytes of the whole storage. FormatError unless it has exactly `id.bytes`.
  virtual std::shared_ptr<const ByteSource> storage(const TorchStorageId& id) const = 0;
};

/// Chooses the kind of container by the first bytes of the file.
std::unique_ptr<TorchContainer> open_torch_container(std::shared_ptr<const ByteSource> file,
                                                     const PickleLimits& limits);

}  // namespace msprobe::formats
