// SPDX-License-Identifier: Apache-2.0
// `msprobe acc_check` and `multi_acc_check`, by their names of 8.x `run_ut` and `multi_run_ut`.
#pragma once

#include <memory>
#include <string_view>

#include "support/command.hpp"

namespace msprobe::precheck {

/// `name`: one of the four.
std::unique_ptr<Command> make_acc_check(std::string_view name);

}  // namespace msprobe::precheck
