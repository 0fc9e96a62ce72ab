// SPDX-License-Identifier: Apache-2.0
// YAML with rules: what is built in, and what users write to change it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/yaml_document.hpp"

namespace msprobe {

class RuleFile {
 public:
  using Kind = YamlDocument::Kind;
  using Node = YamlDocument::Node;

  /// `name` is what complaints begin with. FormatError naming file and line for broken YAML, and for anchors.
  RuleFile(const std::string& name, std::string_view text);
  /// IoError if it cannot be read, FormatError if it is larger than 1 MiB.
  static RuleFile open(const std::string& path);

  /// A scalar that says nothing if there is nothing in the file.
  const Node& root() const;
  /// Elements of a list; none of anything else.
  std::vector<const Node*> elements(const Node& list) const;
  /// Keys and values of a map; none of anything else.
  std::vector<std::pair<const Node*, const Node*>> members(const Node& map) const;

  /// Throws the FormatError for what is wrong with a node.
  [[noreturn]] void fail(const Node& node, std::string_view reason) const { document_.fail(node, reason); }

 private:
  YamlDocument document_;
};

}  // namespace msprobe
