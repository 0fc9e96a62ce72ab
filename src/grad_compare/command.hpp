// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::grad_compare {

std::unique_ptr<Command> make_command();

}  // namespace msprobe::grad_compare
