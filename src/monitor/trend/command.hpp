// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "support/command.hpp"

namespace msprobe::monitor {

/// `msprobe data2db`, and `msprobe monitor csv2db`, which takes a monitor's files alone.
std::unique_ptr<Command> make_trend(std::string_view name);

}  // namespace msprobe::monitor
