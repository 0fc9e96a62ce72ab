// SPDX-License-Identifier: Apache-2.0
// What lies at a path that a user names.
#pragma once

#include <string>

#include "dump/graph_folders.hpp"
#include "dump/saved_arrays.hpp"
#include "dump/tree.hpp"

namespace msprobe::dump {

enum class Layout : std::uint8_t {
  none,
  tree,          // dump.json or debug.json: a file, a rank, a step or a dump root
  saved_arrays,  // data/TAG/step0/rank0/*.npy
  static_graph,  // folders with `.npy` files or a statistic.csv
};

struct Look {
  Layout layout = Layout::none;
  TreeSearch tree;    // its problem tells why the layout is none
  SavedSearch saved;  // looked for if there is no tree
  GraphSearch graph;  // looked for if there are no saved arrays either

  /// Dumps of dynamic and static graphs in one have these beside each other, each with dumps of its own.
  bool has_graph_part() const { return has_folder("graph"); }
  bool has_pynative_part() const { return has_folder("pynative"); }
  /// What an ATB dump consists of, in the folder itself.
  bool has_statistic_csv() const;
  bool has_folder(const std::string& name) const;
};

/// Looks once, and at no more folders than the answer needs. Never throws but for Ctrl-C.
Look look_at(const std::string& path);

}  // namespace msprobe::dump
