// SPDX-License-Identifier: Apache-2.0
#include "compare/classify.hpp"

#include <optional>

#include "dump/tree_everywhere.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

std::vector<std::string> mixed_parts(const Inputs& inputs) {
  std::vector<std::string> parts;
  for (const char* part : {"graph", "pynative"}) {
    if (is_folder(inputs.target + "/" + part) && is_folder(inputs.golden + "/" + part))
      parts.emplace_back(part);
  }
  return parts;
}

/// --rank and --step choose parts of a static-graph dump; inside a part they apply only where it has no tree.
bool asks_for_graph(const Inputs& inputs, bool parted) {
  return inputs.graph && !(parted && dump::search_tree(inputs.target).tree);
}

/// Rejects --rank and --step for a dump with a dump.json: it has no parts to choose, only folders to name as
/// paths.
void refuse_tree(const std::string& path, const dump::GraphSearch& graph) {
  if (!graph.folders.empty() || !graph.problem.empty()) return;
  const std::optional<dump::Tree> tree = dump::search_tree(path).tree;
  if (!tree) return;
  std::string below = path;
  while (below.size() > 1 && below.back() == '/') below.pop_back();
  if (!tree->steps[0].label.empty()) below += "/" + tree->steps[0].label;
  const std::string& rank = tree->steps[0].ranks[0].label;
  if (tree->kind != dump::TreeKind::rank && !rank.empty() && tree->kind != dump::TreeKind::root)
    below += "/" + rank;
  throw UsageError(
      "--rank and --step choose parts of a static-graph dump, and " + display(path) + " is not one",
      tree->kind == dump::TreeKind::rank
          ? "leave them out: that is already the folder of one rank"
          : "pass the folder of a step or rank on both sides instead: " + display(below));
}

}  // namespace

ClassifiedPair classify_everywhere(const Inputs& inputs) {
  if (inputs.kind == DumpKind::atb || inputs.graph)
    throw UsageError("--local supports only dumps with a dump.json");
  ClassifiedPair found;
  found.target.tree.tree = dump::discover_everywhere(inputs.target, dump::RankNames::exact, true);
  found.golden.tree.tree = dump::discover_everywhere(inputs.golden, dump::RankNames::exact, true);
  return found;
}

ClassifiedPair classify(const Inputs& inputs, bool parted) {
  const bool folders = is_folder(inputs.target) && is_folder(inputs.golden);
  ClassifiedPair found;
  if (inputs.kind == DumpKind::atb) {
    if (!folders) throw UsageError("-m atb needs folders with a statistic.csv");
    found.layout = InputLayout::atb;
    return found;
  }
  if (inputs.graph && !folders) {
    throw UsageError("--rank and --step choose parts of a static-graph dump: both paths must be folders");
  }
  if (folders && !parted) found.parts = mixed_parts(inputs);
  if (!found.parts.empty()) {
    found.layout = InputLayout::mixed;
    return found;
  }
  if (asks_for_graph(inputs, parted)) {
    found.layout = InputLayout::static_graphs;
    found.target.graph = dump::find_graph_folders(inputs.target);
    found.golden.graph = dump::find_graph_folders(inputs.golden);
    refuse_tree(inputs.target, found.target.graph);
    refuse_tree(inputs.golden, found.golden.graph);
    return found;
  }
  found.target = dump::look_at(inputs.target);
  found.golden = dump::look_at(inputs.golden);
  if (found.target.layout == found.golden.layout) {
    if (found.target.layout == dump::Layout::saved_arrays) found.layout = InputLayout::single_saves;
    if (found.target.layout == dump::Layout::static_graph) found.layout = InputLayout::static_graphs;
  }
  if (found.layout == InputLayout::dump_trees) {
    found.target.tree.check();
    found.golden.tree.check();
  }
  return found;
}

}  // namespace msprobe::compare
