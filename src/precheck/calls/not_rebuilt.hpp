// SPDX-License-Identifier: Apache-2.0
// The reason why a call cannot be made again. Its row shows it, and the other calls continue.
#pragma once

#include <stdexcept>

namespace msprobe::precheck {

class NotRebuilt : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A rule or the user excludes the call.
class Excluded : public NotRebuilt {
 public:
  using NotRebuilt::NotRebuilt;
};

}  // namespace msprobe::precheck
