// SPDX-License-Identifier: Apache-2.0
// A YAML document as it is written: its nodes with their lines, and aliases that still point at their
// targets. The reader interprets the values. Nothing is copied, so aliases cannot multiply the size here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

class YamlDocument {
 public:
  enum class YamlKind : std::uint8_t { scalar, list, map };
  struct Limits {
    int max_depth = 100;
    std::uint64_t max_nodes = 1'000'000;
  };
  struct YamlNode {
    YamlKind kind = YamlKind::scalar;
    bool plain = false;  // a scalar without quotes and tag
    std::uint32_t line = 0;
    std::uint32_t first_child = 0;
    std::uint32_t child_count = 0;
    std::string text;  // of a scalar
    std::string tag;   // of a scalar, without the prefix of YAML's own tags; may be empty

    /// True for a missing value: `~`, `null`, or nothing at all.
    bool is_null() const {
      return kind == YamlKind::scalar && plain &&
             (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
    }
    /// True for a scalar with a value.
    bool is_text() const { return kind == YamlKind::scalar && !is_null(); }
  };

  /// Reads the one document in `text`, which may be empty. Throws FormatError with `file` and the line for
  /// broken YAML, several documents, unknown tags of lists and maps, an alias without a target or inside its
  /// target, a repeated anchor, and for exceeded limits.
  YamlDocument(std::string_view text, const std::string& file, const Limits& limits);

  bool empty() const { return nodes_.empty(); }
  const YamlNode& root() const { return nodes_.front(); }
  /// The number of children: the elements of a list, or key, value, key, value … of a map.
  std::size_t size(const YamlNode& node) const { return node.child_count; }
  const YamlNode& child(const YamlNode& node, std::size_t index) const {
    return nodes_[children_[node.first_child + index]];
  }

  /// Throws a FormatError about a node.
  [[noreturn]] void fail(const YamlNode& node, std::string_view reason) const;

 private:
  friend class YamlDocumentReader;
  std::string file_;
  std::vector<YamlNode> nodes_;
  std::vector<std::uint32_t> children_;
};

}  // namespace msprobe
