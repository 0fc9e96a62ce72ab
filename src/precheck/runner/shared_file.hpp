// SPDX-License-Identifier: Apache-2.0
// A file without a name that this process and a runner have open: tensors go through it as plain bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "support/descriptor.hpp"

namespace msprobe::precheck {

class SharedFile {
 public:
  /// In the directory for temporary files. IoError.
  SharedFile();

  int descriptor() const { return descriptor_.get(); }
  void clear();
  /// Makes the next tensor begin at a multiple of 64 bytes; returns its offset.
  std::uint64_t begin_tensor();
  /// Appends bytes. IoError, for example on a full disk.
  void append(std::span<const std::byte> bytes);
  /// The size, including the bytes that the other process has written.
  std::uint64_t size() const;
  /// False if the file has fewer bytes.
  bool read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  Descriptor descriptor_;
  std::uint64_t end_ = 0;
};

}  // namespace msprobe::precheck
