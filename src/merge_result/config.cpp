// SPDX-License-Identifier: Apache-2.0
#include "merge_result/config.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "support/yaml_document.hpp"

namespace msprobe::merge_result {
namespace {

constexpr std::uint64_t kMaxFile = std::uint64_t{16} << 20;

using NodeKind = YamlDocument::YamlKind;

/// Reads names and drops repeated ones.
std::vector<std::string> names_of(const YamlDocument& document, const YamlDocument::YamlNode& node,
                                  const std::string& key) {
  const std::string wrong = "'" + key + "' must be a list of names";
  if (node.kind != NodeKind::list) document.fail(node, wrong);
  std::vector<std::string> names;
  std::unordered_set<std::string_view> known;  // texts of the document
  for (std::size_t i = 0; i < document.size(node); ++i) {
    const YamlDocument::YamlNode& name = document.child(node, i);
    if (name.kind != NodeKind::scalar || name.text.empty()) document.fail(name, wrong);
    if (known.insert(name.text).second) names.push_back(name.text);
    if (names.size() > 10'000) document.fail(name, "more than 10,000 names of '" + key + "'");
  }
  return names;
}

}  // namespace

MergeConfig parse_config(std::string_view text, const std::string& file) {
  const YamlDocument document(text, file, {});
  if (document.empty() || document.root().is_null()) throw FormatError(display(file), "the file is empty");
  const YamlDocument::YamlNode& root = document.root();
  if (root.kind != NodeKind::map) document.fail(root, "'api' and 'compare_index' are needed as keys");
  MergeConfig config;
  std::vector<std::string> seen;
  for (std::size_t i = 0; i + 1 < document.size(root); i += 2) {
    const YamlDocument::YamlNode& key = document.child(root, i);
    const YamlDocument::YamlNode& value = document.child(root, i + 1);
    if (key.kind != NodeKind::scalar) document.fail(key, "a key must be a name");
    if (std::find(seen.begin(), seen.end(), key.text) != seen.end())
      document.fail(key, "'" + display(key.text) + "' appears twice");
    seen.push_back(key.text);
    if (key.text == "api") {
      if (!value.is_null()) config.apis = names_of(document, value, "api");
    } else if (key.text == "compare_index") {
      if (!value.is_null()) config.indices = names_of(document, value, "compare_index");
    } else {
      document.fail(key, "unknown key '" + display(key.text) + "': the keys are 'api' and 'compare_index'");
    }
    if (seen.size() > 2) break;
  }
  if (config.apis.empty()) throw FormatError(display(file), "'api' names no operation");
  return config;
}

MergeConfig read_config(const std::string& path) {
  return parse_config(read_all(*open_file(path), kMaxFile), path);
}

}  // namespace msprobe::merge_result
