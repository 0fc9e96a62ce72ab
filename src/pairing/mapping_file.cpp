// SPDX-License-Identifier: Apache-2.0
#include "pairing/mapping_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"
#include "support/yaml_document.hpp"

namespace msprobe::pairing {
namespace {

using NodeKind = YamlDocument::YamlKind;
using Node = YamlDocument::YamlNode;

// A data mapping has a line for each row of a dump; the others are written by hand.
constexpr std::uint64_t kMaxDataFile = std::uint64_t{512} << 20;
constexpr std::uint64_t kMaxDataNodes = 8'000'000;
constexpr std::uint64_t kMaxSmallFile = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxSmallNodes = 500'000;
// The reader follows aliases, so that their contents are counted where they are used.
constexpr std::size_t kMaxRules = 500'000;

/// Reads the values of one file; complaints name it, the line and the key.
class MappingReader {
 public:
  MappingReader(const ByteSource& file, std::uint64_t max_size, std::uint64_t max_nodes)
      : document_(read_all(file, max_size), file.name(), {.max_depth = 8, .max_nodes = max_nodes}) {
    if (document_.empty()) throw FormatError(display(file.name()), "the file is empty");
  }

  const Node& root() const { return document_.root(); }
  [[noreturn]] void fail(const Node& node, const std::string& reason) const { document_.fail(node, reason); }

  /// A scalar that is not empty; `key` is for the message.
  const std::string& name(const Node& node, std::string_view key) const {
    if (node.kind != NodeKind::scalar) {
      fail(node, fmt::format("'{}': must be a name, not a {}", shown(key),
                             node.kind == NodeKind::list ? "list" : "mapping"));
    }
    const bool nothing =
        node.plain && (node.text == "~" || node.text == "null" || node.text == "Null" || node.text == "NULL");
    if (node.text.empty() || nothing) fail(node, fmt::format("'{}': has no value", shown(key)));
    return node.text;
  }

  /// Calls visit(key, key node, value node) for each member.
  template <typename Visit>
  void members(const Node& map, const std::string& what, Visit&& visit) const {
    if (map.kind != NodeKind::map) fail(map, what + " must be a mapping of names to names");
    for (std::size_t i = 0; i + 1 < document_.size(map); i += 2) {
      const Node& key = document_.child(map, i);
      if (key.kind != NodeKind::scalar) fail(key, "a list or mapping cannot be a name");
      if (key.plain && key.text == "<<") fail(key, "merge keys (<<) are not accepted here");
      visit(name(key, key.text.empty() ? "a key" : key.text), key, document_.child(map, i + 1));
    }
  }

  template <typename Visit>
  void elements(const Node& list, Visit&& visit) const {
    for (std::size_t i = 0; i < document_.size(list); ++i) visit(document_.child(list, i));
  }
  std::size_t size(const Node& node) const { return document_.size(node); }

  [[noreturn]] void fail_twice(const Node& node, std::string_view key) const {
    fail(node, fmt::format("'{}': appears twice", shown(key)));
  }

  /// A key in a message: whole files may be one line.
  static std::string shown(std::string_view text) {
    constexpr std::size_t kShown = 120;
    return display(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
  }

 private:
  YamlDocument document_;
};

/// Reads one rule of an api mapping. False if two lists that belong together differ in length.
bool read_rule(const MappingReader& reader, const Node& node, ApiRule& rule) {
  static constexpr std::array<std::string_view, kSections> kSectionNames = {"args", "output", "parameters",
                                                                            "parameters_grad"};
  std::map<std::string, const Node*, std::less<>> members;
  reader.members(
      node, "an api mapping's rule", [&](const std::string& key, const Node& at, const Node& value) {
        // The documents of the Python tool say ms_outputs, the tool itself reads ms_output.
        const std::string known = key == "ms_outputs" || key == "pt_outputs" ? key.substr(0, 9) : key;
        const std::string_view name = std::string_view(known).substr(std::min<std::size_t>(3, known.size()));
        const bool has_side = known.starts_with("ms_") || known.starts_with("pt_");
        if (!has_side || (name != "api" && std::ranges::find(kSectionNames, name) == kSectionNames.end()))
          reader.fail(at, fmt::format("'{}': unknown key", MappingReader::shown(key)));
        if (!members.emplace(known, &value).second) reader.fail_twice(at, key);
      });
  const auto operation = [&](const std::string& key) {
    const auto found = members.find(key);
    if (found == members.end()) reader.fail(node, fmt::format("'{}': is missing", key));
    return reader.name(*found->second, key);
  };
  const auto indices = [&](const std::string& key) {
    std::vector<std::string> list;
    const auto found = members.find(key);
    if (found == members.end()) return list;
    if (found->second->kind != NodeKind::list)
      reader.fail(*found->second, fmt::format("'{}': must be a list", key));
    reader.elements(*found->second, [&](const Node& item) { list.push_back(reader.name(item, key)); });
    return list;
  };
  rule.target = operation("ms_api");
  rule.golden = operation("pt_api");
  for (std::size_t section = 0; section < kSections; ++section) {
    const std::string key = "ms_" + std::string(kSectionNames[section]);
    const std::vector<std::string> target = indices(key);
    const std::vector<std::string> golden = indices("pt_" + std::string(kSectionNames[section]));
    if (target.size() != golden.size()) return false;
    if (!members.contains(key)) continue;
    NameMapping& mapping = rule.sections[section].emplace();
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (!mapping.add(target[i], golden[i]))
        reader.fail(*members.at(key),
                    fmt::format("'{}': {} appears twice", key, MappingReader::shown(target[i])));
    }
  }
  return true;
}

bool is_plain(std::string_view text) {
  const auto inside = [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-' || c == '/';
  };
  // A word without a dot could mean something to YAML, such as `true`.
  return text == "N/A" || (!text.empty() && is_letter(text.front()) &&
                           text.find('.') != std::string_view::npos && std::ranges::all_of(text, inside));
}

void append_scalar(std::string& out, std::string_view text) {
  if (is_plain(text)) {
    out += text;
    return;
  }
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const Utf8 c = utf8_at(text, at);
    if (c.code == '"' || c.code == '\\') {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (c.code >= 0x20 && c.code < 0x7f) {
      out += static_cast<char>(c.code);
    } else if (c.code <= 0xffff) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.code));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c.code));
    }
    at += c.length;
  }
  out += '"';
}

}  // namespace

const std::string* NameMapping::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second].second;
}

bool NameMapping::add(std::string from, std::string to) {
  if (!index_.emplace(from, static_cast<std::uint32_t>(entries_.size())).second) return false;
  entries_.emplace_back(std::move(from), std::move(to));
  return true;
}

NameMapping read_name_mapping(const ByteSource& file) {
  const MappingReader reader(file, kMaxDataFile, kMaxDataNodes);
  NameMapping mapping;
  reader.members(reader.root(), "the file", [&](const std::string& key, const Node& at, const Node& value) {
    if (!mapping.add(key, reader.name(value, key))) reader.fail_twice(at, key);
  });
  return mapping;
}

std::vector<ApiRule> read_api_mapping(const ByteSource& file) {
  const MappingReader reader(file, kMaxSmallFile, kMaxSmallNodes);
  std::vector<ApiRule> rules;
  std::size_t budget = kMaxRules;
  const auto add = [&](const Node& node) {
    ApiRule rule;
    const bool fits = read_rule(reader, node, rule);
    std::size_t cost = 1;
    for (const auto& section : rule.sections) cost += section ? section->entries().size() : 0;
    if (cost > budget) reader.fail(node, "refused: aliases stand for too many rules");
    budget -= cost;
    if (fits) {
      rules.push_back(std::move(rule));
    } else {
      log_warning(
          fmt::format("{}: line {}: the rule for {} is left out: one of its ms_ lists and the pt_ list for "
                      "it differ in length",
                      display(file.name()), node.line + 1, MappingReader::shown(rule.target)));
    }
  };
  if (reader.root().kind == NodeKind::map) {
    add(reader.root());
  } else if (reader.root().kind == NodeKind::list) {
    reader.elements(reader.root(), add);
  } else {
    reader.fail(reader.root(), "the file must be a list of rules");
  }
  return rules;
}

LayerMapping read_layer_mapping(const ByteSource& file) {
  const MappingReader reader(file, kMaxSmallFile, kMaxSmallNodes);
  LayerMapping mapping;
  std::size_t budget = kMaxRules;
  reader.members(reader.root(), "the file", [&](const std::string& type, const Node& at, const Node& value) {
    // 8.x called the outermost layer Cell.
    const auto [place, is_new] = mapping.try_emplace(type == "Cell" ? "TopLayer" : type);
    if (!is_new) reader.fail_twice(at, type);
    LayerRules& rules = place->second;
    reader.members(
        value, fmt::format("'{}'", MappingReader::shown(type)),
        [&](const std::string& path, const Node& key, const Node& target) {
          if (budget-- == 0) reader.fail(key, "refused: aliases stand for too many rules");
          const std::string& golden = reader.name(target, path);
          if (!rules.paths.add(path, golden.substr(0, golden.find('(')))) reader.fail_twice(key, path);
          const auto length = static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) + 1;
          std::vector<std::size_t>& lengths = rules.lengths[path.substr(0, path.find('.'))];
          const auto at_length = std::lower_bound(lengths.begin(), lengths.end(), length, std::greater<>());
          if (at_length == lengths.end() || *at_length != length) lengths.insert(at_length, length);
        });
  });
  return mapping;
}

void append_mapping_line(std::string& out, std::string_view from, std::string_view to) {
  // YAML wants a mark before keys beyond 1024 characters.
  constexpr std::size_t kLongKey = 100;
  const bool is_long = from.size() > kLongKey;
  if (is_long) out += "? ";
  append_scalar(out, from);
  out += is_long ? "\n: " : ": ";
  append_scalar(out, to);
  out += '\n';
}

}  // namespace msprobe::pairing
