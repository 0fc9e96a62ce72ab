// SPDX-License-Identifier: Apache-2.0
// A graph file of MindSpore (.ir): which lines of code each node comes from.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe::code_mapping {

struct IrNode {
  std::string_view scope;  // "Default/fc-Dense/MatMul-op0"
  std::vector<std::string_view>
      lines;  // "In file net.py:9, 21~28/  h = self.fc(x)", the outermost call first
};

/// The nodes with a scope, by their names in dumps: the scope with `_` in place of `/`. If nodes have equal
/// names, the last one counts. `text` must outlive them.
class Nodes {
 public:
  explicit Nodes(std::string_view text);

  bool empty() const { return nodes_.empty(); }
  /// The node of this name; else those whose names are parts of it, from left to right: the longest at each
  /// place, and none that goes on with a digit. Pointers stay valid as long as this object.
  std::vector<const IrNode*> find(std::string_view name) const;

 private:
  void add(const IrNode& node);
  const IrNode* longest_at(std::string_view rest) const;

  std::unordered_map<std::string, IrNode> nodes_;
  std::vector<std::size_t> lengths_;  // of their names, the longest first
};

}  // namespace msprobe::code_mapping
