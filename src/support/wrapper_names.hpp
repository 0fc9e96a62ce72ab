// SPDX-License-Identifier: Apache-2.0
// Components that wrappers of modules add to the names of their contents.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace msprobe {

/// True for a component that may occur anywhere in a name, such as those of torch.compile and FSDP. No module
/// of a model has such a name.
inline bool is_wrapper_component(std::string_view component) {
  constexpr std::array<std::string_view, 4> kWrappers = {"_orig_mod", "_fsdp_wrapped_module",
                                                         "_checkpoint_wrapped_module", "_forward_module"};
  return std::find(kWrappers.begin(), kWrappers.end(), component) != kWrappers.end();
}

}  // namespace msprobe
