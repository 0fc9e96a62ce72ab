// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/tensor_store.hpp"

#include <utility>

#include "formats/tensor_file.hpp"
#include "support/byte_source.hpp"

namespace msprobe::precheck {
namespace {

class TensorFolder final : public TensorStore {
 public:
  explicit TensorFolder(std::string folder) : folder_(std::move(folder)) {}

  formats::StoredTensor open(const std::string& name) const override {
    return formats::open_tensor(open_file_beneath(folder_, name));
  }

 private:
  std::string folder_;
};

}  // namespace

std::shared_ptr<const TensorStore> tensors_in_folder(const std::string& folder) {
  return folder.empty() ? nullptr : std::make_shared<const TensorFolder>(folder);
}

}  // namespace msprobe::precheck
