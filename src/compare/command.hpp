// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "compare/imports.hpp"
#include "support/command.hpp"

namespace msprobe::compare {

/// `msprobe compare`.
std::unique_ptr<Command> make_command();

}  // namespace msprobe::compare
