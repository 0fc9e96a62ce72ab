// SPDX-License-Identifier: Apache-2.0
// The place of an item in its call: its position, its role, and its partner where two frameworks list items
// in another order or under other names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::pairing {

/// Whether the two sides come from two frameworks, which both recorded their names. Calls then have other
/// forms, which is not a difference.
bool of_other_frameworks(const dump::Side& target, const dump::Side& golden);
/// Whether only one side is MindSpore, which also has other operations. The operations of MSAdapter are
/// PyTorch's.
bool of_other_operations(const dump::Side& target, const dump::Side& golden);

/// 1 of `.input.1`; nothing for keywords and nested items.
std::optional<std::size_t> position_of(const dump::Side& side, const dump::Item& item);

/// Calls `take(item, golden)` for the paired tensors that are parameters, either of modules or by their place
/// in a call. `golden_item`: partners, by item of the target.
void for_each_parameter(const dump::Side& target, const std::vector<std::uint32_t>& golden_item,
                        const std::function<void(std::uint32_t item, std::uint32_t golden)>& take);

/// `input.0` of an item's name.
std::string place_text(const dump::Side& side, const dump::Item& item);

/// Whether the two sides list gradients differently. PyTorch lists the gradients of a call in the order of
/// its graph, MindSpore and MSAdapter in the order of the arguments, including those that are not needed.
bool gives_gradients_otherwise(const dump::Side& target, const dump::Side& golden);

/// Whether an item is the gradient of an input that needs no gradient: it is null, and PyTorch does not list
/// it.
bool is_no_gradient(const dump::Side& side, const dump::Item& item);

/// Whether some items may have to pair by their roles instead of their places.
bool pairs_by_role(const dump::Side& target, const dump::Side& golden);

struct RolePartners {
  dump::State state = dump::State::output;
  /// The partners of the entry's items of this state, in their order; kNone: no partner. Empty: all items
  /// pair by their places.
  std::vector<std::uint32_t> partners;
};

/// Pairs outputs of a backward entry by their shapes, and those of one shape in their order. A gradient
/// without a partner of its shape has no partner, since the frameworks differentiate other things there.
/// Pairs parameters of a module, and their gradients, by their names; MindSpore's `gamma` is PyTorch's
/// `weight`.
RolePartners by_role(const dump::Side& target, const dump::Api& ours, const dump::Side& golden,
                     const dump::Api& theirs);

}  // namespace msprobe::pairing
