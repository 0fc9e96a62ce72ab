// SPDX-License-Identifier: Apache-2.0
// Which item of a call belongs to which, where two frameworks give them in another order or call them
// otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// PyTorch gives the gradients of a call in the order of its graph, MindSpore and MSAdapter in that of the
/// arguments, those that nobody needs included.
bool gives_gradients_otherwise(const dump::Side& target, const dump::Side& golden);

/// The gradient of an input that needs none: null, for which PyTorch gives nothing.
bool is_no_gradient(const dump::Side& side, const dump::Item& item);

/// Are there items that may pair by their roles and not as they stand?
bool pairs_by_role(const dump::Side& target, const dump::Side& golden);

struct RolePartners {
  dump::State state = dump::State::output;
  /// For the entry's items of this state, in their order, those of the other entry, or kNone. Empty: all pair
  /// as they stand.
  std::vector<std::uint32_t> partners;
};

/// Outputs of a backward entry by their shapes, and those of one shape in their order: without a partner of
/// its shape a gradient has none, as there the frameworks differentiate other things. Parameters of a module,
/// and their gradients, by their names, of which MindSpore has its own: `gamma` is PyTorch's `weight`.
RolePartners by_role(const dump::Side& target, const dump::Api& ours, const dump::Side& golden,
                     const dump::Api& theirs);

}  // namespace msprobe::diagnosis
