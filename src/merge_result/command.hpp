// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::merge_result {

/// `msprobe merge_result`.
std::unique_ptr<Command> make_command();

}  // namespace msprobe::merge_result
