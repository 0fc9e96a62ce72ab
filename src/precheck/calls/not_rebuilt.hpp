// SPDX-License-Identifier: Apache-2.0
// Why a call cannot be made again; its row says so, and the others go on.
#pragma once

#include <stdexcept>

namespace msprobe::precheck {

class NotRebuilt : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rule, or the user, wants the call not to be made.
class Excluded : public NotRebuilt {
 public:
  using NotRebuilt::NotRebuilt;
};

}  // namespace msprobe::precheck
