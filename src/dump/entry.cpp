// SPDX-License-Identifier: Apache-2.0
#include "dump/entry.hpp"

#include <charconv>
#include <functional>
#include <unordered_map>
#include <utility>

#include "support/ascii.hpp"
#include "support/json_writer.hpp"
#include "support/packet.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

void carry_node(auto& packet, auto& node) {
  packet(node.key.begin, node.key.size, node.tag, node.text.begin, node.text.size, node.end, node.replaced_by,
         node.kind, node.boolean, node.shadowed);
}

struct Spelling {
  std::string_view none;
  std::string_view yes;
  std::string_view no;
  void (*real)(std::string& out, double value);
  void (*text)(std::string& out, std::string_view text);
};
constexpr Spelling kPython = {"None", "True", "False", append_python_repr,
                              [](std::string& out, std::string_view text) { out += python_repr(text); }};
constexpr Spelling kJson = {"null", "true", "false", append_json_real,
                            [](std::string& out, std::string_view text) { append_json_string(out, text); }};

void append_value(std::string& out, const Entry& entry, Entry::Index node, const Spelling& spelling,
                  int level, int indent) {
  switch (entry.kind(node)) {
    case NodeKind::null:
      out += spelling.none;
      return;
    case NodeKind::boolean:
      out += entry.boolean(node) ? spelling.yes : spelling.no;
      return;
    case NodeKind::integer:
      out += entry.text(node) == "-0" ? "0" : entry.text(node);
      return;
    case NodeKind::real:
      spelling.real(out, entry.number(node));
      return;
    case NodeKind::string:
      spelling.text(out, entry.text(node));
      return;
    case NodeKind::array:
    case NodeKind::object:
      break;
  }
  const bool object = entry.is(node, NodeKind::object);
  out += object ? '{' : '[';
  bool first = true;
  entry.children(node, [&](Entry::Index child) {
    if (!first) out += indent == 0 ? ", " : ",";
    first = false;
    append_json_line(out, level + 1, indent);
    if (object) {
      spelling.text(out, entry.key(child));
      out += ": ";
    }
    append_value(out, entry, child, spelling, level + 1, indent);
  });
  if (!first) append_json_line(out, level, indent);
  out += object ? '}' : ']';
}

}  // namespace

std::string_view python_type(NodeKind kind) {
  static constexpr std::array<std::string_view, 7> kNames = {"NoneType", "bool", "int", "float",
                                                             "str",      "list", "dict"};
  return kNames[static_cast<std::size_t>(kind)];
}

void append_json(std::string& out, const Entry& entry, Entry::Index node, int level, int indent) {
  append_value(out, entry, node, kJson, level, indent);
}

void append_json(JsonWriter& json, const Entry& entry, Entry::Index node) {
  json.raw({});
  append_json(json.text(), entry, node, json.level(), json.indent());
}

double Entry::number(Index node) const {
  const std::string_view digits = text(node);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  return parse_number(digits).value_or(0);
}

std::optional<std::int64_t> Entry::integer(Index node) const {
  return is(node, NodeKind::integer) ? whole_number<std::int64_t>(text(node)) : std::nullopt;
}

Entry::Index Entry::find(Index object, const MemberKey& key) const {
  if (!is(object, NodeKind::object)) return kNone;
  for (Index child = object + 1; child < nodes_[object].end; child = nodes_[child].end) {
    if (nodes_[child].tag == key.tag && this->key(child) == key.text)
      return nodes_[child].replaced_by == kNone ? child : nodes_[child].replaced_by;
  }
  return kNone;
}

bool Entry::falsy(Index node) const {
  const NodeKind of = kind(node);
  if (of == NodeKind::integer || of == NodeKind::real) return number(node) == 0;
  if (of == NodeKind::array || of == NodeKind::object) return empty(node);
  return of == NodeKind::string ? text(node).empty() : !boolean(node);  // null is no true
}

std::string Entry::python_str(Index node) const {
  if (is(node, NodeKind::string)) return std::string(text(node));
  std::string out;
  append_value(out, *this, node, kPython, 0, 0);
  return out;
}

void Entry::clear(std::string_view source) {
  nodes_.clear();
  own_.clear();
  source_ = source.data();
  source_size_ = source.size();
  pending_key_ = {};
  pending_tag_ = 0;
}

void Entry::pack(PacketWriter& packet) const {
  Entry kept = *this;
  kept.keep();
  packet(kept.nodes_.size());
  for (const EntryNode& node : kept.nodes_) carry_node(packet, node);
  packet(kept.own_);
}

void Entry::unpack(PacketReader& packet) {
  clear();
  std::size_t count = 0;
  packet(count);
  for (; count > 0; --count) carry_node(packet, nodes_.emplace_back());
  packet(own_);
  if (!is_sound()) refuse_packet();
}

/// Whether all texts are inside own_, and all nodes inside the nodes that hold them.
bool Entry::is_sound() const {
  const auto lies_there = [&](const SourceText& text) {
    const std::size_t begin = text.begin - kOwn;
    return text.size == 0 ||
           ((text.begin & kOwn) != 0 && begin <= own_.size() && text.size <= own_.size() - begin);
  };
  std::vector<Index> ends = {static_cast<Index>(nodes_.size())};
  for (Index node = 0; node < nodes_.size(); ++node) {
    const EntryNode& at = nodes_[node];
    while (ends.back() <= node) ends.pop_back();
    const bool holds = at.kind == NodeKind::array || at.kind == NodeKind::object;
    if (at.kind > NodeKind::object || at.end <= node || at.end > ends.back() ||
        (!holds && at.end != node + 1) ||
        (at.replaced_by != kNone && (at.replaced_by <= node || at.replaced_by >= ends.back())) ||
        !lies_there(at.key) || !lies_there(at.text))
      return false;
    ends.push_back(at.end);
  }
  return true;
}

void Entry::keep() {
  std::size_t size = own_.size();
  for (const EntryNode& node : nodes_) size += node.key.size + node.text.size;
  own_.reserve(size);
  for (EntryNode& node : nodes_) {
    for (SourceText* text : {&node.key, &node.text}) {
      if (text->size == 0 || (text->begin & kOwn) != 0) continue;
      const std::string_view borrowed = view(*text);
      text->begin = static_cast<std::uint32_t>(own_.size()) | kOwn;
      own_ += borrowed;
    }
  }
  source_ = nullptr;
  source_size_ = 0;
}

Entry::SourceText Entry::to_text(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  const std::less_equal<const char*> ahead;
  if (ahead(source_, text.data()) && ahead(text.data() + size, source_ + source_size_))
    return {static_cast<std::uint32_t>(text.data() - source_), size};
  const auto begin = static_cast<std::uint32_t>(own_.size()) | kOwn;
  own_ += text;
  return {begin, size};
}

void Entry::set_key(std::string_view key) {
  pending_key_ = to_text(key);
  pending_tag_ = tag_of(key);
}

Entry::Index Entry::push(NodeKind kind) {
  const auto index = static_cast<Index>(nodes_.size());
  EntryNode& node = nodes_.emplace_back();
  node.kind = kind;
  node.key = std::exchange(pending_key_, {});
  node.tag = std::exchange(pending_tag_, 0);
  node.end = index + 1;
  return index;
}

Entry::Index Entry::open(NodeKind kind) {
  return push(kind);
}

void Entry::close(Index node) {
  nodes_[node].end = static_cast<Index>(nodes_.size());
  if (nodes_[node].kind == NodeKind::object) resolve_duplicates(node);
}

Entry::Index Entry::add_scalar(NodeKind kind, std::string_view text, bool boolean) {
  const Index index = push(kind);
  nodes_[index].text = to_text(text);
  nodes_[index].boolean = boolean;
  return index;
}

void Entry::resolve_duplicates(Index object) {
  // Equal keys have equal tags. One look at each member shows for nearly all objects that no key repeats.
  std::uint64_t seen = 0;
  bool suspect = false;
  for (Index child = object + 1; child < nodes_[object].end; child = nodes_[child].end) {
    constexpr std::uint32_t kSpread = 0x85EBCA6B;  // the members of a tensor do not meet
    const std::uint64_t bit = std::uint64_t{1} << (nodes_[child].tag * kSpread >> 26);
    suspect = suspect || (seen & bit) != 0;
    seen |= bit;
  }
  if (!suspect) return;
  std::unordered_map<std::string_view, Index> first;
  for (Index child = object + 1; child < nodes_[object].end; child = nodes_[child].end) {
    const auto [place, inserted] = first.emplace(key(child), child);
    if (inserted) continue;
    nodes_[place->second].replaced_by = child;
    nodes_[child].shadowed = true;
  }
}

}  // namespace msprobe::dump
