// SPDX-License-Identifier: Apache-2.0
// Why a call cannot be made again; its row says so, and the others go on.
#pragma once

#include <stdexcept>
#include <string>

namespace msprobe::precheck {

class NotRebuilt : public std::runtime_error {
 public:
  /// `python`: what the Python tool says in this place.
  NotRebuilt(const std::string& reason, std::string python)
      : std::runtime_error(reason), python_(std::move(python)) {}
  const std::string& python() const { return python_; }

 private:
  std::string python_;
};

}  // namespace msprobe::precheck
