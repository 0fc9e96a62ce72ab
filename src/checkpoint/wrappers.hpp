// SPDX-License-Identifier: Apache-2.0
// Components that programs and wrappers add to the names of a model: `state_dict.model.`, `module.`,
// `_orig_mod`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe::checkpoint {

/// The name without the components of wrappers that may occur anywhere in it, such as torch.compile's and
/// FSDP's. No module of a model has such a name.
std::string without_wrappers(std::string_view name);

/// Heads to be taken off, one after the other: {"state_dict", "model"}.
using Heads = std::vector<std::string_view>;

/// The name without those of the heads that it has, in their order.
std::string without_heads(std::string name, const Heads& heads);

/// Ways to read these names: first as they are, then without the components that start most of them.
std::vector<Heads> possible_heads(const std::vector<std::string>& names);

}  // namespace msprobe::checkpoint
