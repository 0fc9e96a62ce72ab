// SPDX-License-Identifier: Apache-2.0
// When is a value bad (NaN or Inf as Max or Min), and where in an entry.
#pragma once

#include <string_view>

#include "anomaly/rules.hpp"
#include "dump/entry.hpp"
#include "dump/nonfinite.hpp"

namespace msprobe::anomaly {

using dump::Bad;
using dump::kInf;
using dump::kNan;

/// "NaN", "Inf", "NaN and Inf"; "clean" for neither.
std::string_view bad_name(Bad bad);

/// Max and Min of the object and of all objects below it, in lists and in objects. `as_input`: without
/// tensors that a transfer receives into.
Bad bad_anywhere(const dump::Entry& entry, dump::Entry::Index node, bool as_input = false);

/// Calls `visit(item)` for the node and each object below it that has a bad Max or Min.
template <typename Visit>
void each_bad(const dump::Entry& entry, dump::Entry::Index node, Visit&& visit) {
  if (!entry.is_container(node)) return;
  if (entry.is(node, dump::NodeKind::object) && dump::bad_item(entry, node) != 0) visit(node);
  entry.children(node, [&](dump::Entry::Index child) { each_bad(entry, child, visit); });
}

struct EntryBadness {
  Bad inputs = 0;  // of all input sections
  Bad outputs = 0;
};

/// Judges the items and all below them. `write_only`: arguments to leave out, or null.
EntryBadness judge_entry(const dump::Entry& entry, const ArgumentPlaces* write_only);

}  // namespace msprobe::anomaly
