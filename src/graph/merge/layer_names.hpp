// SPDX-License-Identifier: Apache-2.0
// Numbers of layers in the names of modules: `layers.3.`, `layer.3.`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace msprobe::graph {

struct LayerNumber {
  std::size_t begin = std::string_view::npos;  // of the digits
  std::size_t end = 0;
  explicit operator bool() const { return begin != std::string_view::npos; }
};
/// The first layer number at or after `from`.
LayerNumber find_layer(std::string_view name, std::size_t from = 0);

/// The name with that number in place of the first one of a layer.
std::string with_layer(std::string_view name, std::size_t number);

}  // namespace msprobe::graph
