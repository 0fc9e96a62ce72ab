// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe::graph {
namespace {

using TypeAndShape = std::pair<std::string, std::string>;

/// Of the results, or of all else.
std::vector<TypeAndShape> types_and_shapes(const NodeData& data, bool outputs) {
  std::vector<TypeAndShape> found;
  for (const ItemText& item : data.items) {
    if (item.output != outputs) continue;
    const auto text = [&](std::string_view key) {
      const std::string_view member = item.member(key);
      return std::string(member.empty() ? "null" : member);  // what is not there is null
    };
    found.emplace_back(text("type"), text("shape"));
  }
  return found;
}

bool same_in_order(const std::vector<TypeAndShape>& target, const std::vector<TypeAndShape>& golden,
                   bool shapes_only) {
  if (!shapes_only) return target == golden;
  const std::size_t both = std::min(target.size(), golden.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (target[i].second != golden[i].second) return false;
  }
  return true;
}

}  // namespace

bool same_arguments(const NodeData& target, const NodeData& golden, bool shapes_only) {
  return same_in_order(types_and_shapes(target, false), types_and_shapes(golden, false), shapes_only) &&
         same_in_order(types_and_shapes(target, true), types_and_shapes(golden, true), shapes_only);
}

}  // namespace msprobe::graph
