// SPDX-License-Identifier: Apache-2.0
// YAML files with rules: the built-in ones, and those that users write to change them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/yaml_document.hpp"

namespace msprobe {

class RuleFile {
 public:
  using Kind = YamlDocument::YamlKind;
  using Node = YamlDocument::YamlNode;

  /// Messages begin with `name`. Throws FormatError with file and line for broken YAML and for anchors.
  RuleFile(const std::string& name, std::string_view text);
  /// Throws IoError if it cannot be read, FormatError if it is larger than 1 MiB.
  static RuleFile open(const std::string& path);

  /// The root; an empty scalar if the file is empty.
  const Node& root() const;
  /// The elements of a list; empty for anything else.
  std::vector<const Node*> elements(const Node& list) const;
  /// The keys and values of a map; empty for anything else.
  std::vector<std::pair<const Node*, const Node*>> members(const Node& map) const;

  /// Throws a FormatError about a node.
  [[noreturn]] void fail(const Node& node, std::string_view reason) const { document_.fail(node, reason); }

 private:
  YamlDocument document_;
};

}  // namespace msprobe
