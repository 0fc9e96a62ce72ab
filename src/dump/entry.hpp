// SPDX-License-Identifier: Apache-2.0
// One value under `data` of a dump.json, as a small tree that is thrown away before the next one is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::dump {

enum class NodeKind : std::uint8_t { null, boolean, integer, real, string, array, object };

/// A tree in one vector, in document order; a node is known by its index, the root is 0. Duplicate keys of an
/// object are resolved as Python does: the place of the first, the value of the last.
class Entry {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  NodeKind kind(Index node) const { return nodes_[node].kind; }
  bool is(Index node, NodeKind kind) const { return nodes_[node].kind == kind; }
  /// Member name in an object; empty elsewhere.
  std::string_view key(Index node) const { return view(nodes_[node].key_begin, nodes_[node].key_size); }
  /// String: its value. Number: its digits as written.
  std::string_view text(Index node) const { return view(nodes_[node].text_begin, nodes_[node].text_size); }
  bool boolean(Index node) const { return nodes_[node].boolean; }
  /// Numeric value of an integer or real node.
  double number(Index node) const;

  /// Member `key` of an object, or kNone.
  Index find(Index object, std::string_view key) const;
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

  // Building (by the JSON reader).
  void clear();
  Index open(NodeKind kind);
  void close(Index node);
  void set_key(std::string_view key);
  Index add_scalar(NodeKind kind, std::string_view text, bool boolean = false);
  std::size_t memory() const { return nodes_.size() * sizeof(Node) + text_.size(); }

 private:
  struct Node {
    std::uint64_t key_begin = 0;
    std::uint64_t text_begin = 0;
    std::uint32_t key_size = 0;
    std::uint32_t text_size = 0;
    Index end = 0;
    Index replaced_by = kNone;
    NodeKind kind = NodeKind::null;
    bool boolean = false;
    bool shadowed = false;
  };
  std::string_view view(std::uint64_t begin, std::uint32_t size) const {
    return std::string_view(text_).substr(begin, size);
  }
  std::uint64_t keep(std::string_view text);
  Index push(NodeKind kind);
  void append_python_repr(std::string& out, Index node) const;
  void resolve_duplicates(Index object);

  std::vector<Node> nodes_;
  std::string text_;
  std::uint64_t pending_key_ = 0;
  std::uint32_t pending_key_size_ = 0;
};

}  // namespace msprobe::dump
