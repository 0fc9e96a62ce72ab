// SPDX-License-Identifier: Apache-2.0
// The details of a root: its entry, the modules around it, and the call that led to it.
#pragma once

#include <string>
#include <vector>

#include "anomaly/search.hpp"
#include "dump/entry.hpp"

namespace msprobe::anomaly {

struct RootDetails {
  dump::Entry entry;
  std::vector<std::string> construct;  // the outermost module first, the entry last; empty: unknown
  dump::Entry stack;                   // the frames as the file has them
  dump::Entry::Index stack_node = 0;   // their node; without frames an empty object
  std::vector<std::string> frames;
  bool frames_of_forward = false;  // the frames belong to the forward call of a backward entry
};

/// Reads the details of entries of one rank. Its construct.json and stack.json are read once. A part that
/// cannot be read stays empty, and `problems` has the reason.
std::vector<RootDetails> read_details(const RankInput& rank, const std::vector<ScannedEntry>& places,
                                      std::vector<std::string>& problems);

}  // namespace msprobe::anomaly
