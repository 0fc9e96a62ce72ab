// SPDX-License-Identifier: Apache-2.0
// What arguments that stand by their place are called.
#pragma once

#include <string>
#include <string_view>

#include "diagnosis/imports.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// `eps (input.4)` of a call of `Functional.layer_norm` and `input.4`, `approximate` of `input.approximate`;
/// the place itself where no name is known.
std::string argument_text(const dump::Side& side, std::string_view entry, std::string_view place);

}  // namespace msprobe::diagnosis
