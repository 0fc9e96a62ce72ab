// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::inspect {

/// `msprobe inspect`.
std::unique_ptr<Command> make_command();

}  // namespace msprobe::inspect
