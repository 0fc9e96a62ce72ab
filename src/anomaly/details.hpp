// SPDX-License-Identifier: Apache-2.0
// What there is to say about a root: its entry, the modules around it, the call that led to it.
#pragma once

#include <string>
#include <vector>

#include "anomaly/search.hpp"
#include "dump/entry.hpp"

namespace msprobe::anomaly {

struct RootDetails {
  dump::Entry entry;
  std::vector<std::string> construct;  // outermost module first, the entry last; empty: not known
  dump::Entry stack;                   // a tree with the frames as the file has them
  dump::Entry::Index stack_node = 0;   // their place in it; an empty object without frames
  std::vector<std::string> frames;
  bool frames_of_forward = false;  // of the forward call of a backward entry
};

/// Reads the details of entries of one rank. Its construct.json and stack.json are read once; what cannot be
/// read is left empty, and `problems` says why.
std::vector<RootDetails> read_details(const RankInput& rank, const std::vector<EntryPlace>& places,
                                      std::vector<std::string>& problems);

}  // namespace msprobe::anomaly
