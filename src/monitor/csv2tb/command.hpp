// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::monitor {

/// `msprobe monitor csv2tb`.
std::unique_ptr<Command> make_csv2tb();

}  // namespace msprobe::monitor
