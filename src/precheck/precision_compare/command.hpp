// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::precheck {

/// `msprobe api_precision_compare`.
std::unique_ptr<Command> make_api_precision_compare();

}  // namespace msprobe::precheck
