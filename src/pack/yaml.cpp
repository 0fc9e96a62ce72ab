// SPDX-License-Identifier: Apache-2.0
#include "pack/yaml.hpp"

#include "support/text.hpp"
#include "support/yaml_document.hpp"

namespace msprobe::pack {
namespace {

/// Replaces aliases and merge keys by the nodes that they refer to, within the limits.
class Expander {
 public:
  Expander(const YamlDocument& document, const YamlLimits& limits) : document_(document), limits_(limits) {}

  PackValue run() { return document_.empty() ? PackValue() : expand(document_.root(), 0); }

 private:
  using Kind = YamlDocument::YamlKind;
  using Node = YamlDocument::YamlNode;

  static bool is_merge(const Node& node) { return node.plain && node.text == "<<"; }

  PackValue scalar(const Node& node) const {
    if (node.plain) return resolve_yaml_scalar(node.text);
    if (node.tag.empty() || node.tag == "str") return PackValue::of_text(node.text);
    if (node.tag == "null") return {};
    const PackValue value = resolve_yaml_scalar(node.text);
    const bool fits = (node.tag == "int" && value.is(PackValue::Type::integer)) ||
                      (node.tag == "float" && value.is_number()) ||
                      (node.tag == "bool" && value.is(PackValue::Type::boolean)) ||
                      (node.tag == "timestamp" && value.is(PackValue::Type::null));
    if (!fits) document_.fail(node, "the tag " + display(node.tag) + " is not supported here");
    return node.tag == "float" ? PackValue::of(value.number()) : value;
  }

  void spend(const Node& node, std::uint64_t text) {
    ++expanded_;
    text_ += text;
    if (expanded_ > limits_.max_expanded || text_ > limits_.max_text)
      document_.fail(node, "refused: aliases expand to too many values");
  }

  PackValue expand(const Node& node, int depth) {
    if (depth > limits_.max_depth) document_.fail(node, "refused: nested too deeply");
    spend(node, node.text.size());
    switch (node.kind) {
      case Kind::scalar:
        return scalar(node);
      case Kind::list: {
        PackValue list = PackValue::list();
        for (std::size_t i = 0; i < document_.size(node); ++i)
          list.push(expand(document_.child(node, i), depth + 1));
        return list;
      }
      case Kind::map:
        break;
    }
    PackValue map = PackValue::map();
    append_pairs(map, node, depth);
    map.settle();
    return map;
  }

  /// Adds the merged maps first and then the map's own pairs, because later ones win.
  void append_pairs(PackValue& map, const Node& node, int depth) {
    if (depth > limits_.max_depth) document_.fail(node, "refused: nested too deeply");
    for (std::size_t i = 0; i + 1 < document_.size(node); i += 2) {
      if (!is_merge(document_.child(node, i))) continue;
      const Node& source = document_.child(node, i + 1);
      spend(source, 0);
      if (source.kind == Kind::map) {
        append_pairs(map, source, depth + 1);
      } else if (source.kind == Kind::list) {
        for (std::size_t k = document_.size(source); k-- > 0;) {
          const Node& part = document_.child(source, k);
          if (part.kind != Kind::map) document_.fail(part, "only maps can be merged");
          spend(part, 0);
          append_pairs(map, part, depth + 1);
        }
      } else {
        document_.fail(source, "only maps can be merged");
      }
    }
    for (std::size_t i = 0; i + 1 < document_.size(node); i += 2) {
      const Node& key = document_.child(node, i);
      if (is_merge(key)) continue;
      if (key.kind != Kind::scalar) document_.fail(key, "a list or map cannot be a name");
      spend(key, key.text.size());
      map.push(python_str(scalar(key)), expand(document_.child(node, i + 1), depth + 1));
    }
  }

  const YamlDocument& document_;
  const YamlLimits& limits_;
  std::uint64_t expanded_ = 0;
  std::uint64_t text_ = 0;
};

}  // namespace

PackValue read_yaml(std::string_view text, const std::string& file, const YamlLimits& limits) {
  const YamlDocument document(text, file, {.max_depth = limits.max_depth, .max_nodes = limits.max_nodes});
  return Expander(document, limits).run();
}

}  // namespace msprobe::pack
