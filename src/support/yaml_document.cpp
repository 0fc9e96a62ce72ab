// SPDX-License-Identifier: Apache-2.0
#include "support/yaml_document.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <unordered_map>

#include "support/error.hpp"
#include "support/text.hpp"
#include "support/yaml_events.hpp"

namespace msprobe {
namespace {

constexpr std::string_view kTags = "tag:yaml.org,2002:";

[[noreturn]] void fail_at(const std::string& file, std::size_t line, std::string_view reason) {
  throw FormatError(display(file), fmt::format("line {}: {}", line + 1, reason));
}

}  // namespace

class YamlDocumentReader {
 public:
  YamlDocumentReader(YamlDocument& document, std::string_view text, const YamlDocument::Limits& limits)
      : document_(document), limits_(limits), parser_(text) {}

  void run() {
    bool document = false;
    for (;;) {
      YamlEvent next;
      parse(next);
      switch (next.event.type) {
        case YAML_STREAM_END_EVENT:
          return;
        case YAML_DOCUMENT_START_EVENT:
          if (document) fail(next, "a second document, but only one is expected");
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
          close();
          break;
        default:
          break;
      }
    }
  }

 private:
  using Kind = YamlDocument::YamlKind;
  using Node = YamlDocument::YamlNode;

  /// A list or map that has not ended yet.
  struct OpenNode {
    std::uint32_t node = 0;
    std::vector<std::uint32_t> children;
  };

  [[noreturn]] void fail(const YamlEvent& event, std::string_view reason) const {
    fail_at(document_.file_, event.event.start_mark.line, reason);
  }

  void parse(YamlEvent& event) {
    if (parser_.read(event)) return;
    fail_at(document_.file_, parser_.line(),
            parser_.problem() == nullptr ? "not YAML" : display(parser_.problem()));
  }

  std::uint32_t add(const YamlEvent& event, Kind kind, const yaml_char_t* anchor) {
    if (document_.nodes_.size() >= limits_.max_nodes) fail(event, "refused: too many values");
    const auto index = static_cast<std::uint32_t>(document_.nodes_.size());
    Node& node = document_.nodes_.emplace_back();
    node.kind = kind;
    node.line = static_cast<std::uint32_t>(event.event.start_mark.line);
    if (!open_.empty()) open_.back().children.push_back(index);
    if (anchor != nullptr && !anchors_.emplace(yaml_text(anchor), index).second)
      fail(event, "a second anchor with the same name");
    return index;
  }

  void open(const YamlEvent& event, Kind kind, const yaml_char_t* tag, std::string_view only,
            const yaml_char_t* anchor) {
    const std::string_view name = yaml_text(tag);
    if (!name.empty() && name != "!" && name != std::string(kTags) + std::string(only))
      fail(event, "the tag " + display(name) + " is not supported");
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth))
      fail(event, "refused: nested too deeply");
    const std::uint32_t node = add(event, kind, anchor);
    open_.push_back({node, {}});
  }

  void close() {
    const OpenNode done = std::move(open_.back());
    open_.pop_back();
    Node& node = document_.nodes_[done.node];
    node.first_child = static_cast<std::uint32_t>(document_.children_.size());
    node.child_count = static_cast<std::uint32_t>(done.children.size());
    document_.children_.insert(document_.children_.end(), done.children.begin(), done.children.end());
  }

  bool is_open(std::uint32_t node) const {
    for (const OpenNode& one : open_) {
      if (one.node == node) return true;
    }
    return false;
  }

  void add_alias(const YamlEvent& event) {
    const auto found = anchors_.find(std::string(yaml_text(event.event.data.alias.anchor)));
    if (found == anchors_.end() || open_.empty()) fail(event, "an alias without an anchor");
    if (is_open(found->second)) fail(event, "an alias inside its own anchor");
    if (++aliases_ > limits_.max_nodes) fail(event, "refused: too many values");
    open_.back().children.push_back(found->second);
  }

  void add_scalar(const YamlEvent& event) {
    const auto& scalar = event.event.data.scalar;
    Node& node = document_.nodes_[add(event, Kind::scalar, scalar.anchor)];
    node.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    std::string_view tag = yaml_text(scalar.tag);
    node.plain = tag.empty() && scalar.plain_implicit != 0 && scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (tag == "!") tag = {};
    if (tag.starts_with(kTags)) tag.remove_prefix(kTags.size());
    node.tag = tag;
  }

  YamlDocument& document_;
  const YamlDocument::Limits& limits_;
  YamlParser parser_;
  std::vector<OpenNode> open_;
  std::unordered_map<std::string, std::uint32_t> anchors_;
  std::uint64_t aliases_ = 0;
};

YamlDocument::YamlDocument(std::string_view text, const std::string& file, const Limits& limits)
    : file_(file) {
  YamlDocumentReader(*this, text, limits).run();
}

void YamlDocument::fail(const YamlNode& node, std::string_view reason) const {
  fail_at(file_, node.line, reason);
}

}  // namespace msprobe
