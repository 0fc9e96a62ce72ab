// SPDX-License-Identifier: Apache-2.0
// Names in sentences: of positional arguments, so that one can say `eps` instead of `input.4`, and of calls.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dump/names.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// `eps (input.4)` of a call of `Functional.layer_norm` and `input.4`, `approximate` of `input.approximate`;
/// the place itself where no name is known.
std::string argument_text(const dump::Side& side, std::string_view entry, std::string_view place);

/// The name of an entry's call in another direction: `Torch.a.3.backward` of `Torch.a.3.forward`.
std::string name_in(const dump::EntryName& name, std::string_view direction);

/// `Torch.a.3`, `Module.a.L.3`: the same in all directions.
std::string call_of(const dump::EntryName& name);

/// `a, b and 3 more`: no more than `most` of the names.
std::string list_of(const std::vector<std::string>& names, std::size_t most);

}  // namespace msprobe::diagnosis
