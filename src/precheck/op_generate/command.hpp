// SPDX-License-Identifier: Apache-2.0
// `msprobe op_generate`: one operation of a dump as a case of its own.
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::precheck {

std::unique_ptr<Command> make_op_generate();

}  // namespace msprobe::precheck
