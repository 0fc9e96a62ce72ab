// SPDX-License-Identifier: Apache-2.0
// The store of the tensors that the entries of calls name.
#pragma once

#include <memory>
#include <string>

#include "formats/stored_tensor.hpp"

namespace msprobe::precheck {

class TensorStore {
 public:
  virtual ~TensorStore() = default;
  /// Opens a tensor by its name. IoError, FormatError.
  virtual formats::StoredTensor open(const std::string& name) const = 0;
};

/// The files of a dump; null if `folder` is empty.
std::shared_ptr<const TensorStore> tensors_in_folder(const std::string& folder);

}  // namespace msprobe::precheck
