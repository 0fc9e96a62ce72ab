// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/entry_edit.hpp"

#include <string_view>
#include <utility>

#include "dump/member_stream.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::NodeKind;

void copy_value(const Entry& from, Entry::Index node, const EntryEdits& edits, Entry& out) {
  if (const auto edit = edits.find(node); edit != edits.end()) {
    if (edit->second == "null") {
      out.add_scalar(NodeKind::null, {});
      return;
    }
    const bool real = edit->second.find_first_not_of("-0123456789") != std::string::npos;
    out.add_scalar(real ? NodeKind::real : NodeKind::integer, edit->second);
  } else if (from.is(node, NodeKind::array) || from.is(node, NodeKind::object)) {
    const Entry::Index container = out.open(from.kind(node));
    from.children(node, [&](Entry::Index child) {
      if (from.is(node, NodeKind::object)) out.set_key(from.key(child));
      copy_value(from, child, edits, out);
    });
    out.close(container);
  } else {
    out.add_scalar(from.kind(node), from.text(node), from.boolean(node));
  }
}

bool is_of(std::string_view key, EntrySection section) {
  if (section == EntrySection::outputs) return key == "output";
  return key == "input" || key == "input_args" || key == "input_kwargs";
}

void copy_members(const Entry& from, EntrySection section, bool of_section, Entry& out) {
  if (!from.is(0, NodeKind::object)) return;
  from.children(0, [&](Entry::Index child) {
    if (is_of(from.key(child), section) != of_section) return;
    out.set_key(from.key(child));
    copy_value(from, child, {}, out);
  });
}

}  // namespace

void edit_entry(const Entry& from, const EntryEdits& edits, Entry& out) {
  out.clear();
  copy_value(from, 0, edits, out);
}

std::uint64_t read_place(const MergeNode::RankEntry& place, Entry& entry) {
  if (place.entry == 0) return 0;
  const RankGraph& graph = place.rank->graph;
  const dump::EntryPlace& at = graph.places[place.entry];
  dump::read_entry_at(*graph.json, at.offset, at.size, entry, graph.entries.at(place.entry));
  return at.size;
}

std::uint64_t replace_section(Entry& entry, const MergeNode::RankEntry& from, EntrySection section) {
  Entry other;
  const std::uint64_t size = read_place(from, other);
  Entry both;
  const Entry::Index root = both.open(NodeKind::object);
  const auto own_members = [&] {
    // An entry without a place has no tree.
    if (entry.memory() > 0) copy_members(entry, section, false, both);
  };
  if (section == EntrySection::outputs) own_members();
  if (size > 0) copy_members(other, section, true, both);
  if (section == EntrySection::inputs) own_members();
  both.close(root);
  entry = std::move(both);
  return size;
}

}  // namespace msprobe::graph
