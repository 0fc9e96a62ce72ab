// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::config_check {

/// `msprobe config_check`.
std::unique_ptr<Command> make_command();

}  // namespace msprobe::config_check
