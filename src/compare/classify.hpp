// SPDX-License-Identifier: Apache-2.0
// Finds out with a single look at each of two paths what kind of dump it holds.
#pragma once

#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "dump/look.hpp"

namespace msprobe::compare {

enum class InputLayout {
  dump_trees,     // with dump.json or debug.json
  static_graphs,  // kernels of MindSpore's static graph
  single_saves,   // arrays saved one by one
  atb,
  mixed,  // folders of dynamic and static graphs: each folder of a part is a separate dump
};

struct ClassifiedPair {
  InputLayout layout = InputLayout::dump_trees;
  dump::Look target;  // not filled in for mixed dumps and those of ATB
  dump::Look golden;
  std::vector<std::string> parts;  // folders of mixed dumps that both have
};

/// For paths on the local disks of several machines: only dumps with a dump.json. Throws as
/// discover_everywhere() does.
ClassifiedPair classify_everywhere(const Inputs& inputs);

/// Throws UsageError if such paths cannot have the requested parts, and IoError or FormatError if they hold
/// no known dump. `parted`: the paths are inside a part of mixed dumps, which has no parts itself.
ClassifiedPair classify(const Inputs& inputs, bool parted = false);

}  // namespace msprobe::compare
