// SPDX-License-Identifier: Apache-2.0
#include "anomaly/badness.hpp"

#include "dump/communication.hpp"

namespace msprobe::anomaly {

using dump::Entry;
using dump::NodeKind;

namespace {

/// Is this one receiving transfer of a batch?
bool receives(const Entry& entry, Entry::Index node) {
  const Entry::Index operation = entry.find(node, "op");
  if (operation == Entry::kNone || entry.find(node, "peer") == Entry::kNone) return false;
  return dump::is_receive(entry.text(operation));
}

}  // namespace

std::string_view bad_name(Bad bad) {
  constexpr std::string_view kNames[] = {"clean", "NaN", "Inf", "NaN and Inf"};
  return kNames[bad & 3];
}

Bad bad_anywhere(const Entry& entry, Entry::Index node, bool as_input) {
  if (!entry.is(node, NodeKind::array) && !entry.is(node, NodeKind::object)) return 0;
  if (as_input && receives(entry, node)) return 0;
  Bad bad = bad_item(entry, node);
  entry.children(node, [&](Entry::Index child) { bad |= bad_anywhere(entry, child, as_input); });
  return bad;
}

EntryBadness judge_entry(const Entry& entry, const ArgumentPlaces* write_only) {
  EntryBadness result;
  if (!entry.is(0, NodeKind::object)) return result;
  entry.children(0, [&](Entry::Index section) {
    const std::string_view name = entry.key(section);
    const bool positional = name == "input_args";
    const bool named = name == "input_kwargs";
    const bool output = name == "output";
    if (!positional && !named && !output && name != "input") return;
    Bad bad = 0;
    std::size_t position = 0;
    entry.children(section, [&](Entry::Index item) {
      const bool skip = write_only != nullptr && ((positional && write_only->positions.contains(position)) ||
                                                  (named && write_only->names.contains(entry.key(item))));
      ++position;
      if (!skip) bad |= bad_anywhere(entry, item, !output);
    });
    if (output) {
      result.outputs |= bad;
    } else {
      result.inputs |= bad;
    }
  });
  return result;
}

}  // namespace msprobe::anomaly
