// SPDX-License-Identifier: Apache-2.0
#include "support/rule_file.hpp"

#include <cstddef>
#include <cstdint>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::uint64_t kMaxRuleFile = std::uint64_t{1} << 20;
constexpr int kMaxDepth = 8;

/// Rules need no anchors, and a few lines of aliases can make a reader run forever.
std::string_view without_anchors(const std::string& name, std::string_view text) {
  if (text.find('&') != std::string_view::npos)
    throw FormatError(display(name), "YAML anchors are not accepted here");
  return text;
}

}  // namespace

RuleFile::RuleFile(const std::string& name, std::string_view text)
    : document_(without_anchors(name, text), name, {.max_depth = kMaxDepth}) {}

RuleFile RuleFile::open(const std::string& path) {
  return {path, read_all(*open_file(path), kMaxRuleFile)};
}

const RuleFile::Node& RuleFile::root() const {
  static const Node nothing = {.plain = true, .text = {}, .tag = {}};
  return document_.empty() ? nothing : document_.root();
}

std::vector<const RuleFile::Node*> RuleFile::elements(const Node& list) const {
  std::vector<const Node*> nodes;
  if (list.kind != Kind::list) return nodes;
  for (std::size_t i = 0; i < document_.size(list); ++i) nodes.push_back(&document_.child(list, i));
  return nodes;
}

std::vector<std::pair<const RuleFile::Node*, const RuleFile::Node*>> RuleFile::members(
    const Node& map) const {
  std::vector<std::pair<const Node*, const Node*>> nodes;
  if (map.kind != Kind::map) return nodes;
  for (std::size_t i = 0; i + 1 < document_.size(map); i += 2)
    nodes.emplace_back(&document_.child(map, i), &document_.child(map, i + 1));
  return nodes;
}

}  // namespace msprobe
