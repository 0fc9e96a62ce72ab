// SPDX-License-Identifier: Apache-2.0
// The reason why a call cannot be made again. Its row shows it, and the other calls continue.
#pragma once

#include "support/error.hpp"

namespace msprobe::precheck {

class NotRebuilt : public Error {
 public:
  using Error::Error;
};

/// A rule or the user excludes the call.
class Excluded : public NotRebuilt {
 public:
  using NotRebuilt::NotRebuilt;
};

}  // namespace msprobe::precheck
