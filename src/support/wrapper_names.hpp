// SPDX-License-Identifier: Apache-2.0
// Components that wrappers of modules put into the names of what they hold.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace msprobe {

/// Is it one that may stand anywhere in a name, such as torch.compile's and FSDP's? No module of a model is
/// called so.
inline bool is_wrapper_component(std::string_view component) {
  constexpr std::array<std::string_view, 4> kWrappers = {"_orig_mod", "_fsdp_wrapped_module",
                                                         "_checkpoint_wrapped_module", "_forward_module"};
  return std::find(kWrappers.begin(), kWrappers.end(), component) != kWrappers.end();
}

}  // namespace msprobe
