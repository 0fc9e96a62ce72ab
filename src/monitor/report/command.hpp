// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::monitor {

std::unique_ptr<Command> make_report();

}  // namespace msprobe::monitor
