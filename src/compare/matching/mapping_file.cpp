// SPDX-License-Identifier: Apache-2.0
#include "compare/matching/mapping_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"
#include "support/yaml_document.hpp"

namespace msprobe::compare {
namespace {

using NodeKind = YamlDocument::Kind;
using Node = YamlDocument::Node;

// A data mapping has a line for each row of a dump; the others are written by hand.
constexpr std::uint64_t kMaxDataFile = std::uint64_t{512} << 20;
constexpr std::uint64_t kMaxDataNodes = 8'000'000;
constexpr std::uint64_t kMaxSmallFile = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxSmallNodes = 500'000;
// Aliases are followed, so what they stand for is counted where it is used.
constexpr std::size_t kMaxRules = 500'000;

/// Reads the values of one file; complaints name it, the line and the key.
class Reader {
 public:
  Reader(const ByteSource& file, std::uint64_t max_size, std::uint64_t max_nodes)
      : document_(text_of(file, max_size), file.name(), {.max_depth = 8, .max_nodes = max_nodes}) {
    if (document_.empty()) throw FormatError(display(file.name()), "there is nothing in it");
  }

  const Node& root() const { return document_.root(); }
  [[noreturn]] void fail(const Node& node, const std::string& reason) const { document_.fail(node, reason); }

  /// A scalar that says something; `key` is for the message.
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

  /// A key in a message: whole files may be one line.
  static std::string shown(std::string_view text) {
    constexpr std::size_t kShown = 120;
    return display(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
  }

 private:
  static std::string text_of(const ByteSource& file, std::uint64_t max_size) {
    const std::vector<std::byte> bytes = read_all(file, max_size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  YamlDocument document_;
};

/// The sections of one rule of an api mapping as they are written.
class ApiRuleReader {
 public:
  explicit ApiRuleReader(const Reader& reader) : reader_(reader) {}

  ApiRule read(const Node& node, bool& fits) {
    reader_.members(node, "an api mapping's rule",
                    [&](const std::string& key, const Node& at, const Node& value) {
                      // The documents of the Python tool say ms_outputs, the tool itself reads ms_output.
                      const std::string known = key == "ms_outputs"   ? "ms_output"
                                                : key == "pt_outputs" ? "pt_output"
                                                                      : key;
                      if (std::find(std::begin(kKeys), std::end(kKeys), known) == std::end(kKeys))
                        reader_.fail(at, fmt::format("'{}': is not known here", Reader::shown(key)));
                      if (!members_.emplace(known, &value).second)
                        reader_.fail(at, fmt::format("'{}': stands here twice", Reader::shown(key)));
                    });
    ApiRule rule;
    rule.target = operation(node, "ms_api");
    rule.golden = operation(node, "pt_api");
    fits = section("args", rule.inputs) && section("output", rule.outputs) &&
           section("parameters", rule.parameters) && section("parameters_grad", rule.parameters_grad);
    return rule;
  }

 private:
  static constexpr std::string_view kKeys[] = {"ms_api",
                                               "pt_api",
                                               "ms_args",
                                               "pt_args",
                                               "ms_output",
                                               "pt_output",
                                               "ms_parameters",
                                               "pt_parameters",
                                               "ms_parameters_grad",
                                               "pt_parameters_grad"};

  std::string operation(const Node& rule, const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) reader_.fail(rule, fmt::format("'{}': is missing", key));
    return reader_.name(*found->second, key);
  }

  std::vector<std::string> indices(const std::string& key) const {
    std::vector<std::string> list;
    const auto found = members_.find(key);
    if (found == members_.end()) return list;
    if (found->second->kind != NodeKind::list)
      reader_.fail(*found->second, fmt::format("'{}': must be a list", key));
    reader_.elements(*found->second, [&](const Node& item) { list.push_back(reader_.name(item, key)); });
    return list;
  }

  /// False if the two lists do not go together.
  bool section(const std::string& name, std::optional<NameMapping>& mapping) const {
    const std::vector<std::string> target = indices("ms_" + name);
    const std::vector<std::string> golden = indices("pt_" + name);
    if (target.size() != golden.size()) return false;
    if (!members_.contains("ms_" + name)) return true;
    mapping.emplace();
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (!mapping->add(target[i], golden[i])) {
        reader_.fail(*members_.at("ms_" + name),
                     fmt::format("'ms_{}': {} stands here twice", name, Reader::shown(target[i])));
      }
    }
    return true;
  }

  const Reader& reader_;
  std::map<std::string, const Node*, std::less<>> members_;
};

bool is_plain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/';
  };
  // A word without a dot could mean something to YAML, such as `true`.
  return text == "N/A" ||
         (!text.empty() && letter(text.front()) && text.find('.') != std::string_view::npos &&
          std::all_of(text.begin(), text.end(), inside));
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

std::size_t NameMapping::position(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? entries_.size() : found->second;
}

bool NameMapping::add(std::string from, std::string to) {
  if (!index_.emplace(from, static_cast<std::uint32_t>(entries_.size())).second) return false;
  entries_.emplace_back(std::move(from), std::move(to));
  return true;
}

NameMapping read_name_mapping(const ByteSource& file) {
  const Reader reader(file, kMaxDataFile, kMaxDataNodes);
  NameMapping mapping;
  reader.members(reader.root(), "the file", [&](const std::string& key, const Node& at, const Node& value) {
    if (!mapping.add(key, reader.name(value, key)))
      reader.fail(at, fmt::format("'{}': stands here twice", Reader::shown(key)));
  });
  return mapping;
}

std::vector<ApiRule> read_api_mapping(const ByteSource& file) {
  const Reader reader(file, kMaxSmallFile, kMaxSmallNodes);
  std::vector<ApiRule> rules;
  std::size_t budget = kMaxRules;
  const auto add = [&](const Node& node) {
    bool fits = false;
    ApiRule rule = ApiRuleReader(reader).read(node, fits);
    std::size_t cost = 1;
    for (const auto* section : {&rule.inputs, &rule.outputs, &rule.parameters, &rule.parameters_grad}) {
      if (*section) cost += (*section)->entries().size();
    }
    if (cost > budget) reader.fail(node, "refused: aliases stand for too many rules");
    budget -= cost;
    if (fits) {
      rules.push_back(std::move(rule));
    } else {
      log_warning(
          fmt::format("{}: line {}: The user-defined mapping table is incorrect, make sure that the number "
                      "of parameters is "
                      "equal; the rule for {} is left out",
                      display(file.name()), node.line + 1, Reader::shown(rule.target)));
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
  const Reader reader(file, kMaxSmallFile, kMaxSmallNodes);
  LayerMapping mapping;
  std::size_t budget = kMaxRules;
  reader.members(reader.root(), "the file", [&](const std::string& type, const Node& at, const Node& value) {
    // 8.x called the outermost layer Cell.
    const auto [place, is_new] = mapping.try_emplace(type == "Cell" ? "TopLayer" : type);
    if (!is_new) reader.fail(at, fmt::format("'{}': stands here twice", Reader::shown(type)));
    LayerRules& rules = place->second;
    reader.members(
        value, fmt::format("'{}'", Reader::shown(type)),
        [&](const std::string& path, const Node& key, const Node& target) {
          if (budget-- == 0) reader.fail(key, "refused: aliases stand for too many rules");
          const std::string& golden = reader.name(target, path);
          if (!rules.paths.add(path, golden.substr(0, golden.find('('))))
            reader.fail(key, fmt::format("'{}': stands here twice", Reader::shown(path)));
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

}  // namespace msprobe::compare
