// SPDX-License-Identifier: Apache-2.0
// Entries of a dump.json with other values in places.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "dump/entry.hpp"
#include "graph/merge/merge_graph.hpp"

namespace msprobe::graph {

/// Numbers as JSON or Python spells them, or null, by their places.
using EntryEdits = std::unordered_map<dump::Entry::Index, std::string>;
void edit_entry(const dump::Entry& from, const EntryEdits& edits, dump::Entry& out);

/// The bytes that the entry takes in its file; 0, and nothing in `entry`, if there is none. Throws IoError,
/// FormatError.
std::uint64_t read_place(const MergeNode::Place& place, dump::Entry& entry);

enum class EntrySection { inputs, outputs };
/// The inputs or outputs become those of the entry at the other place; gives the bytes that it takes.
std::uint64_t replace_section(dump::Entry& entry, const MergeNode::Place& from, EntrySection section);

}  // namespace msprobe::graph
