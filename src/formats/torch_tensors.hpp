// SPDX-License-Identifier: Apache-2.0
// All tensors of a PyTorch file, named by the path that leads to them: `model.layer.0.weight`.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/tensor_set.hpp"
#include "formats/torch_file.hpp"
#include "formats/torch_shards.hpp"

namespace msprobe::formats {

class TorchTensors final : public TensorSet {
 public:
  static constexpr int kMaxDepth = 400;
  static constexpr std::size_t kMaxNames = std::size_t{64} << 20;  // bytes of all names on the paths

  /// FormatError for a broken file, for values that nest too deep, and for names that take more than
  /// kMaxNames.
  explicit TorchTensors(const std::shared_ptr<const ByteSource>& file);

  /// In the order of the file. A tensor that is reached by two paths has both names; a tensor inside a value
  /// that two others share has only the first.
  std::size_t size() const override { return tensors_.size(); }
  const std::string& name(std::size_t index) const override { return tensors_.at(index).first; }
  StoredTensor tensor(std::size_t index) const override;
  /// nullptr unless the tensor is a part of a larger one, whose rest other ranks hold. tensor() returns the
  /// part; FormatError if there is a problem with it.
  const TorchShard* shard(std::size_t index) const {
    const auto found = shards_.find(index);
    return found == shards_.end() ? nullptr : &found->second;
  }

  std::string place(std::size_t index) const override { return file_.place(tensors_.at(index).second); }

  const Pickle& pickle() const { return file_.pickle(); }

 private:
  void walk(std::uint64_t file_size);

  std::string file_name_;
  TorchFile file_;
  std::vector<std::pair<std::string, PickleRef>> tensors_;
  std::unordered_map<std::size_t, TorchShard> shards_;  // by index of the tensor
};

}  // namespace msprobe::formats
