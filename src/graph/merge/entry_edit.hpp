// SPDX-License-Identifier: Apache-2.0
// Edits entries of a dump.json: replaces some of their values.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "dump/entry.hpp"
#include "graph/merge/merge_graph.hpp"

namespace msprobe::graph {

/// Numbers as JSON or Python spells them, or null, by their places in the entry.
using EntryEdits = std::unordered_map<dump::Entry::Index, std::string>;
void edit_entry(const dump::Entry& from, const EntryEdits& edits, dump::Entry& out);

/// Reads an entry and returns the number of its bytes in the file; 0, and an empty `entry`, if there is no
/// such entry. Throws IoError, FormatError.
std::uint64_t read_place(const MergeNode::RankEntry& place, dump::Entry& entry);

enum class EntrySection { inputs, outputs };
/// Replaces the inputs or outputs by those of the entry at the other place. Returns the number of bytes of
/// that entry.
std::uint64_t replace_section(dump::Entry& entry, const MergeNode::RankEntry& from, EntrySection section);

}  // namespace msprobe::graph
