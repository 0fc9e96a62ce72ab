// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/layer_names.hpp"

#include "support/ascii.hpp"

namespace msprobe::graph {

LayerNumber find_layer(std::string_view name, std::size_t from) {
  constexpr std::string_view kLayer = "layer";
  for (std::size_t at = name.find(kLayer, from); at != std::string_view::npos;
       at = name.find(kLayer, at + 1)) {
    std::size_t begin = at + kLayer.size();
    if (begin < name.size() && name[begin] == 's') ++begin;
    if (begin >= name.size() || name[begin++] != '.') continue;
    std::size_t end = begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end > begin && end < name.size() && name[end] == '.') return {begin, end};
  }
  return {};
}

std::string with_layer(std::string_view name, std::size_t number) {
  std::string out(name);
  if (const LayerNumber layer = find_layer(name))
    out.replace(layer.begin, layer.end - layer.begin, std::to_string(number));
  return out;
}

}  // namespace msprobe::graph
