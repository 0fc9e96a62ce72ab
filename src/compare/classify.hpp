// SPDX-License-Identifier: Apache-2.0
// What two paths hold, found in one look at each.
#pragma once

#include <string>
#include <vector>

#include "compare/compare.hpp"
#include "compare/imports.hpp"
#include "dump/look.hpp"

namespace msprobe::compare {

enum class Layout {
  dump_trees,     // with dump.json or debug.json
  static_graphs,  // kernels of MindSpore's static graph
  single_saves,   // arrays saved one by one
  atb,
  mixed,  // folders of dynamic and static graphs: each folder of a part is a dump of its own
};

struct Found {
  Layout layout = Layout::dump_trees;
  dump::Look target;  // of mixed dumps and those of ATB nothing is looked for here
  dump::Look golden;
  std::vector<std::string> parts;  // folders of mixed dumps that both have
};

/// Of paths on the own disks of several machines: dumps with a dump.json alone. Throws as
/// discover_everywhere().
Found classify_everywhere(const Inputs& inputs);

/// UsageError if what is asked for cannot be in such paths; IoError, FormatError if nothing is known there.
/// `parted`: the paths lie inside a part of mixed dumps, which has none itself.
Found classify(const Inputs& inputs, bool parted = false);

}  // namespace msprobe::compare
