// SPDX-License-Identifier: Apache-2.0
// One value under `data` of a dump.json, as a small tree that is thrown away before the next one is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {
class JsonWriter;
class PacketReader;
class PacketWriter;
}  // namespace msprobe

namespace msprobe::dump {

enum class NodeKind : std::uint8_t { null, boolean, integer, real, string, array, object };
/// As Python calls the type of such a value: NoneType, bool, …
std::string_view python_type(NodeKind kind);

/// The place of an entry's value in the file.
struct EntryPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// A tree in one vector, in document order; a node is known by its index, the root is 0. Duplicate keys of an
/// object are resolved as Python does: the place of the first, the value of the last. The texts are those of
/// the reader, and last as long as it lets them, unless keep() is called.
class Entry {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  NodeKind kind(Index node) const { return nodes_[node].kind; }
  /// False for kNone.
  bool is(Index node, NodeKind kind) const { return node != kNone && nodes_[node].kind == kind; }
  bool is_number(Index node) const { return is(node, NodeKind::integer) || is(node, NodeKind::real); }
  bool is_container(Index node) const { return is(node, NodeKind::array) || is(node, NodeKind::object); }
  /// Member name in an object; empty elsewhere.
  std::string_view key(Index node) const { return view(nodes_[node].key); }
  /// String: its value. Number: its digits as written.
  std::string_view text(Index node) const { return view(nodes_[node].text); }
  bool boolean(Index node) const { return nodes_[node].boolean; }
  /// Numeric value of an integer or real node.
  double number(Index node) const;

  /// The name of a member, with a number that nearly always distinguishes it from others at a glance.
  struct MemberKey {
    // NOLINTBEGIN(google-explicit-constructor): any name is a key
    constexpr MemberKey(std::string_view name) : text(name), tag(tag_of(name)) {}
    constexpr MemberKey(const char* name) : MemberKey(std::string_view(name)) {}
    // NOLINTEND(google-explicit-constructor)
    std::string_view text;
    std::uint32_t tag;
  };
  /// Member `key` of an object, or kNone; also kNone if `object` is kNone or not an object.
  Index find(Index object, const MemberKey& key) const;
  /// The value of a string; empty for other nodes.
  std::string_view string(Index node) const { return is(node, NodeKind::string) ? text(node) : ""; }
  std::string_view string(Index object, const MemberKey& key) const { return string(find(object, key)); }
  /// Whether a member is true. False if it is missing or not a boolean.
  bool flag(Index object, const MemberKey& key) const {
    const Index node = find(object, key);
    return is(node, NodeKind::boolean) && boolean(node);
  }
  /// The value of an integer that fits; nothing for other nodes.
  std::optional<std::int64_t> integer(Index node) const;
  /// Finds several members of an object in one pass; kNone for members that it does not have.
  template <std::size_t N>
  std::array<Index, N> find_all(Index object, const std::array<MemberKey, N>& keys) const {
    std::array<Index, N> found;
    found.fill(kNone);
    children(object, [&](Index child) {
      for (std::size_t i = 0; i < N; ++i) {
        if (nodes_[child].tag == keys[i].tag && key(child) == keys[i].text) found[i] = child;
      }
    });
    return found;
  }
  /// Calls `visit(child)` for each element or member in order.
  template <typename Visit>
  void children(Index parent, Visit&& visit) const {
    for (Index child = parent + 1; child < nodes_[parent].end; child = nodes_[child].end) {
      if (nodes_[child].shadowed) continue;
      visit(nodes_[child].replaced_by == kNone ? child : nodes_[child].replaced_by);
    }
  }
  bool empty(Index container) const { return nodes_[container].end == container + 1; }

  /// False in the sense of Python: null, false, 0, "", [], {}.
  bool falsy(Index node) const;

  /// `str()` of Python for the value: `[1, None, 'a']`, `True`, `2.5`, `abc`.
  std::string python_str(Index node) const;

  /// Copies the parts of the reader's text that it needs, so that it can outlive the text.
  void keep();

  // Building. `source`: the text that keys and values are parts of; those of other texts are copied.
  void clear(std::string_view source = {});
  Index open(NodeKind kind);
  void close(Index node);
  void set_key(std::string_view key);
  Index add_scalar(NodeKind kind, std::string_view text, bool boolean = false);
  /// Packs and unpacks the tree, to send it between processes. FormatError for a packet without a tree.
  void pack(PacketWriter& packet) const;
  void unpack(PacketReader& packet);
  std::size_t memory() const { return nodes_.size() * sizeof(EntryNode) + own_.size(); }

 private:
  /// A part of the source, or, with kOwn, of own_.
  struct SourceText {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  static constexpr std::uint32_t kOwn = std::uint32_t{1} << 31;

  static constexpr std::uint32_t tag_of(std::string_view name) {
    if (name.empty()) return 0;
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(name[i])}; };
    return byte(0) | byte(name.size() / 2) << 8 | byte(name.size() - 1) << 16 |
           static_cast<std::uint32_t>(name.size()) << 24;
  }

  struct EntryNode {
    SourceText key;
    std::uint32_t tag = 0;  // of the key
    SourceText text;
    Index end = 0;
    Index replaced_by = kNone;
    NodeKind kind = NodeKind::null;
    bool boolean = false;
    bool shadowed = false;
  };
  std::string_view view(SourceText text) const {
    if (text.size == 0) return {};  // an empty text may have no source
    return {(text.begin & kOwn) != 0 ? own_.data() + (text.begin - kOwn) : source_ + text.begin, text.size};
  }
  SourceText to_text(std::string_view text);
  Index push(NodeKind kind);
  void resolve_duplicates(Index object);
  bool is_sound() const;

  std::vector<EntryNode> nodes_;
  const char* source_ = nullptr;
  std::size_t source_size_ = 0;
  std::string own_;
  SourceText pending_key_;
  std::uint32_t pending_tag_ = 0;
};

/// The value and all below it exactly as Python's json module writes it, each level `indent` columns further
/// in; continuation lines begin at the column of `level` * `indent`. `indent` 0 puts all on one line.
void append_json(std::string& out, const Entry& entry, Entry::Index node, int level, int indent = 2);
/// The same, as the next value of `json`.
void append_json(JsonWriter& json, const Entry& entry, Entry::Index node);

}  // namespace msprobe::dump
