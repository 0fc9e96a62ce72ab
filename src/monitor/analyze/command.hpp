// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::monitor {

/// `msprobe monitor analyze`.
std::unique_ptr<Command> make_analyze();

}  // namespace msprobe::monitor
