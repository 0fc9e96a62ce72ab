// SPDX-License-Identifier: Apache-2.0
// Why a call cannot be made again; its row says so, and the others go on.
#pragma once

#include <stdexcept>

namespace msprobe::precheck {

class NotRebuilt : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace msprobe::precheck
