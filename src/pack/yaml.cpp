// SPDX-License-Identifier: Apache-2.0
#include "pack/yaml.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <memory>
#include <optional>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::string_view kTags = "tag:yaml.org,2002:";

struct Event {
  yaml_event_t event{};
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event); }
};

std::string_view view(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(text));
}

/// The document as it is written: nodes that aliases may share.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file, const YamlLimits& limits)
      : file_(file), limits_(limits) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    const char* const begin = text.empty() ? "" : text.data();  // libyaml wants no null pointer
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(begin), text.size());
  }
  ~Reader() { yaml_parser_delete(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Value run() {
    bool document = false;
    for (;;) {
      Event next;
      parse(next);
      switch (next.event.type) {
        case YAML_STREAM_END_EVENT:
          return document ? expand(0, 0) : Value();
        case YAML_DOCUMENT_START_EVENT:
          if (document) fail(next, "a second document, only one is expected");
          document = true;
          break;
        case YAML_ALIAS_EVENT:
          add_alias(next);
          break;
        case YAML_SCALAR_EVENT:
          add_scalar(next);
          break;
        case YAML_SEQUENCE_START_EVENT:
          open(next, Kind::list, next.event.data.sequence_start.tag, "seq",
               next.event.data.sequence_start.anchor);
          break;
        case YAML_MAPPING_START_EVENT:
          open(next, Kind::map, next.event.data.mapping_start.tag, "map",
               next.event.data.mapping_start.anchor);
          break;
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
          nodes_[open_.back()].open = false;
          open_.pop_back();
          break;
        default:
          break;
      }
    }
  }

 private:
  enum class Kind : std::uint8_t { scalar, list, map };
  struct Node {
    Kind kind = Kind::scalar;
    bool open = true;
    bool merge = false;  // the key `<<`
    std::size_t line = 0;
    Value value;                          // of a scalar
    std::vector<std::uint32_t> children;  // of a map: key, value, key, value
  };

  [[noreturn]] void fail(std::size_t line, std::string_view reason) const {
    throw FormatError(display(file_), fmt::format("line {}: {}", line + 1, reason));
  }
  [[noreturn]] void fail(const Event& event, std::string_view reason) const {
    fail(event.event.start_mark.line, reason);
  }

  void parse(Event& event) {
    if (yaml_parser_parse(&parser_, &event.event) != 0) return;
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    fail(parser_.error == YAML_READER_ERROR ? 0 : parser_.problem_mark.line,
         parser_.problem == nullptr ? "not YAML" : display(parser_.problem));
  }

  std::uint32_t add(const Event& event, Kind kind, const yaml_char_t* anchor) {
    if (nodes_.size() >= limits_.max_nodes) fail(event, "refused: too many values");
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    node.open = kind != Kind::scalar;
    node.line = event.event.start_mark.line;
    if (!open_.empty()) nodes_[open_.back()].children.push_back(index);
    if (anchor != nullptr && !anchors_.emplace(view(anchor), index).second)
      fail(event, "a second anchor of one name");
    return index;
  }

  void open(const Event& event, Kind kind, const yaml_char_t* tag, std::string_view only,
            const yaml_char_t* anchor) {
    const std::string_view name = view(tag);
    if (!name.empty() && name != "!" && name != std::string(kTags) + std::string(only))
      fail(event, "the tag " + display(name) + " is not supported");
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth))
      fail(event, "refused: nested too deeply");
    open_.push_back(add(event, kind, anchor));
  }

  void add_alias(const Event& event) {
    const auto found = anchors_.find(std::string(view(event.event.data.alias.anchor)));
    if (found == anchors_.end()) fail(event, "an alias of nothing");
    if (nodes_[found->second].open) fail(event, "an alias inside what it stands for");
    if (++aliases_ > limits_.max_nodes) fail(event, "refused: too many values");
    if (open_.empty()) fail(event, "an alias of nothing");
    nodes_[open_.back()].children.push_back(found->second);
  }

  void add_scalar(const Event& event) {
    const auto& scalar = event.event.data.scalar;
    Node& node = nodes_[add(event, Kind::scalar, scalar.anchor)];
    std::string text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    std::string_view tag = view(scalar.tag);
    if (tag.empty() || tag == "!") {
      const bool plain = tag.empty() && scalar.plain_implicit != 0 && scalar.style == YAML_PLAIN_SCALAR_STYLE;
      node.merge = plain && text == "<<";
      node.value = plain ? resolve_yaml_scalar(text) : Value::of_text(std::move(text));
      return;
    }
    if (tag.starts_with(kTags)) tag.remove_prefix(kTags.size());
    if (tag == "str") {
      node.value = Value::of_text(std::move(text));
      return;
    }
    if (tag == "null") return;
    const Value value = resolve_yaml_scalar(text);
    const bool fits = (tag == "int" && value.is(Value::Kind::integer)) ||
                      (tag == "float" && value.is_number()) ||
                      (tag == "bool" && value.is(Value::Kind::boolean)) ||
                      (tag == "timestamp" && value.is(Value::Kind::null));
    if (!fits) fail(event, "the tag " + display(tag) + " is not supported here");
    node.value = tag == "float" ? Value::of(value.number()) : value;
  }

  void spend(const Node& node, std::uint64_t text) {
    ++expanded_;
    text_ += text;
    if (expanded_ > limits_.max_expanded || text_ > limits_.max_text)
      fail(node.line, "refused: aliases stand for too many values");
  }

  Value expand(std::uint32_t index, int depth) {
    const Node& node = nodes_[index];
    if (depth > limits_.max_depth) fail(node.line, "refused: nested too deeply");
    spend(node, node.value.text().size());
    switch (node.kind) {
      case Kind::scalar:
        return node.value;
      case Kind::list: {
        Value list = Value::list();
        for (const std::uint32_t child : node.children) list.push(expand(child, depth + 1));
        return list;
      }
      case Kind::map:
        break;
    }
    Value map = Value::map();
    append_pairs(map, node, depth);
    map.settle();
    return map;
  }

  /// What is merged first, then the map's own: later ones win.
  void append_pairs(Value& map, const Node& node, int depth) {
    if (depth > limits_.max_depth) fail(node.line, "refused: nested too deeply");
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      if (!nodes_[node.children[i]].merge) continue;
      const Node& source = nodes_[node.children[i + 1]];
      spend(source, 0);
      if (source.kind == Kind::map) {
        append_pairs(map, source, depth + 1);
      } else if (source.kind == Kind::list) {
        for (std::size_t k = source.children.size(); k-- > 0;) {
          const Node& part = nodes_[source.children[k]];
          if (part.kind != Kind::map) fail(part.line, "only maps can be merged");
          spend(part, 0);
          append_pairs(map, part, depth + 1);
        }
      } else {
        fail(source.line, "only maps can be merged");
      }
    }
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const Node& key = nodes_[node.children[i]];
      if (key.merge) continue;
      if (key.kind != Kind::scalar) fail(key.line, "a list or map cannot be a name");
      spend(key, key.value.text().size());
      map.push(python_str(key.value), expand(node.children[i + 1], depth + 1));
    }
  }

  const std::string& file_;
  const YamlLimits& limits_;
  yaml_parser_t parser_{};
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> open_;
  std::unordered_map<std::string, std::uint32_t> anchors_;
  std::uint64_t aliases_ = 0;
  std::uint64_t expanded_ = 0;
  std::uint64_t text_ = 0;
};

}  // namespace

Value read_yaml(std::string_view text, const std::string& file, const YamlLimits& limits) {
  return Reader(text, file, limits).run();
}

}  // namespace msprobe::pack
