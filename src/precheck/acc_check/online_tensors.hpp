// SPDX-License-Identifier: Apache-2.0
// Tensors of a running training, in files that it writes and this process reads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "dump/entry.hpp"
#include "precheck/calls/tensor_store.hpp"
#include "support/byte_source.hpp"
#include "support/descriptor.hpp"

namespace msprobe::precheck {

/// A file in memory: the training appends to it, and the bytes that were read are given back to the system.
class ReceivedFile final : public ByteSource {
 public:
  /// Takes the descriptor over. IoError if it does not belong to a file.
  explicit ReceivedFile(int descriptor);

  std::uint64_t size() const override;
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  const std::string& name() const override { return name_; }
  /// Gives bytes back that are not needed any more.
  void release(std::uint64_t begin, std::uint64_t size) const noexcept;

 private:
  Descriptor descriptor_;
  std::string name_ = "the tensors of the training";
};

/// The tensors of one call, by their names in its entries.
class ReceivedTensors final : public TensorStore {
 public:
  /// `names`: an object, {name: [type, shape, offset in `file`]}. FormatError for anything else, and for a
  /// name that cannot be the name of a file.
  void add(const dump::Entry& message, dump::Entry::Index names,
           const std::shared_ptr<const ByteSource>& file);
  formats::StoredTensor open(const std::string& name) const override;
  const std::map<std::string, formats::StoredTensor>& all() const { return tensors_; }

 private:
  std::map<std::string, formats::StoredTensor> tensors_;
};

}  // namespace msprobe::precheck
