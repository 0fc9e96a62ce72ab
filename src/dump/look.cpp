// SPDX-License-Identifier: Apache-2.0
#include "dump/look.hpp"

#include <algorithm>

namespace msprobe::dump {

bool Look::has_folder(const std::string& name) const {
  return std::binary_search(tree.top.folders.begin(), tree.top.folders.end(), name);
}

bool Look::has_statistic_csv() const {
  return std::binary_search(tree.top.files.begin(), tree.top.files.end(), "statistic.csv");
}

Look look_at(const std::string& path) {
  Look look;
  look.tree = search_tree(path);
  if (look.tree.tree) {
    look.layout = Layout::tree;
  } else if (look.tree.is_folder) {
    look.saved = find_saved_arrays(path);
    if (!look.saved.tags.empty()) {
      look.layout = Layout::saved_arrays;
      return look;
    }
    look.graph = find_graph_folders(path);
    if (!look.graph.folders.empty()) look.layout = Layout::static_graph;
  }
  return look;
}

}  // namespace msprobe::dump
