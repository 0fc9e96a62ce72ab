// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/layer_names.hpp"

namespace msprobe::graph {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

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

std::string with_layer(std::string_view name, std::size_t number, bool all) {
  std::string out;
  std::size_t done = 0;
  while (const LayerNumber layer = find_layer(name, done)) {
    out.append(name.substr(done, layer.begin - done)).append(std::to_string(number));
    done = layer.end;
    if (!all) break;
  }
  return out.append(name.substr(done));
}

}  // namespace msprobe::graph
