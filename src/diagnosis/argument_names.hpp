// SPDX-License-Identifier: Apache-2.0
// Names for positional arguments, so that a sentence can say `eps` instead of `input.4`.
#pragma once

#include <string>
#include <string_view>

#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// `eps (input.4)` of a call of `Functional.layer_norm` and `input.4`, `approximate` of `input.approximate`;
/// the place itself where no name is known.
std::string argument_text(const dump::Side& side, std::string_view entry, std::string_view place);

}  // namespace msprobe::diagnosis
