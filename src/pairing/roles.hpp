// SPDX-License-Identifier: Apache-2.0
// What an item of a call is to it: its position, its role, and its partner where two frameworks give items in
// another order or under other names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::pairing {

/// Two that both record theirs: calls have other forms, which says nothing.
bool of_other_frameworks(const dump::Side& target, const dump::Side& golden);
/// MindSpore on one side alone: its operations are others, too. Those of MSAdapter are PyTorch's.
bool of_other_operations(const dump::Side& target, const dump::Side& golden);

/// 1 of `.input.1`; nothing for keywords and what is nested.
std::optional<std::size_t> position_of(const dump::Side& side, const dump::Item& item);

/// Calls `take(item, golden)` for the paired tensors that are parameters: of modules, or by their place in a
/// call. `golden_item`: partners, by item under test.
void for_each_parameter(const dump::Side& target, const std::vector<std::uint32_t>& golden_item,
                        const std::function<void(std::uint32_t item, std::uint32_t golden)>& take);

/// `input.0` of an item's name.
std::string place_text(const dump::Side& side, const dump::Item& item);

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

}  // namespace msprobe::pairing
