// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "support/error.hpp"

namespace msprobe::series {

/// A setting of the monitor that cannot be used. what() begins with the exception that a training script
/// would see: "TypeError: ops should be a list".
class SettingError : public Error {
 public:
  SettingError(std::string_view kind, const std::string& reason) : Error(std::string(kind) + ": " + reason) {}
};

}  // namespace msprobe::series
