// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "code_mapping/ir_graph.hpp"
#include "fuzz_target.hpp"

FUZZ_TARGET(code_mapping)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe::code_mapping;
  const std::string text(data, data + size);
  const Nodes nodes(text);
  for (std::size_t at = 0; at < text.size(); at += 97) {
    for (const IrNode* node : nodes.find(std::string_view(text).substr(at, 200))) {
      std::string name(node->scope);
      std::replace(name.begin(), name.end(), '/', '_');
      const auto found = nodes.find(name);
      if (found.size() != 1 || found[0] != node)
        throw std::logic_error("a node that is not found by its name");
    }
  }
}
