// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/node_pairs.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace msprobe::graph_node_pairs_test {

using namespace msprobe::graph;
using model_tree::kNoNode;
using model_tree::kRoot;
using model_tree::ModelTree;
using model_tree::NodeIndex;

namespace {

/// Child and parent; `""` is the root, and `?` none.
using Members = std::vector<std::pair<std::string, std::string>>;

ModelTree tree_of(const Members& members) {
  ModelTree tree;
  for (const auto& [child, parent] : members) {
    const NodeIndex node = tree.add(child);
    if (parent != "?") tree.attach(node, parent.empty() ? kRoot : tree.find(parent));
  }
  return tree;
}

/// All nodes hold entries but the root and those called `Apis…`, numbered in the order of their making.
NodeEntries entries_of(const ModelTree& tree) {
  NodeEntries entries(tree.size(), kNoEntry);
  std::uint32_t next = 0;
  for (NodeIndex node = 2; node < tree.size(); ++node) {
    if (!tree.name(node).starts_with("Apis")) entries[node] = next++;
  }
  return entries;
}

struct Trees {
  Trees(const Members& one, const Members& other)
      : target(tree_of(one)),
        golden(tree_of(other)),
        target_entries(entries_of(target)),
        golden_entries(entries_of(golden)) {}

  TreePair pair() const { return {target, golden, target_entries, golden_entries}; }

  /// Names of both, without the root; the golden side's account must be the same one.
  std::map<std::string, std::string> names(const NodePairs& pairs) const {
    std::map<std::string, std::string> out;
    for (NodeIndex node = 2; node < target.size(); ++node) {
      const NodeIndex partner = pairs.golden_of[node];
      if (partner == kNoNode) continue;
      CHECK(pairs.target_of[partner] == node);
      out.emplace(target.name(node), golden.name(partner));
    }
    return out;
  }

  ModelTree target;
  ModelTree golden;
  NodeEntries target_entries;
  NodeEntries golden_entries;
};

using Names = std::map<std::string, std::string>;

}  // namespace

TEST_CASE("names pair below pairs, or wherever they are in the tree") {
  const Trees trees({{"Module.a", ""}, {"Torch.x", "Module.a"}, {"Module.b", ""}, {"Torch.y", "Module.b"}},
                    {{"Module.a", ""}, {"Torch.y", "Module.a"}, {"Torch.x", "Module.a"}, {"Module.c", ""}});
  CHECK(trees.names(pair_names(trees.pair(), true)) ==
        Names{{"Module.a", "Module.a"}, {"Torch.x", "Torch.x"}});
  CHECK(trees.names(pair_names(trees.pair(), false)) ==
        Names{{"Module.a", "Module.a"}, {"Torch.x", "Torch.x"}, {"Torch.y", "Torch.y"}});
}

TEST_CASE("calls pair in their order, without numbers of calls and ranks") {
  const Trees trees({{"Module.m", ""},
                     {"Torch.relu.0.forward", "Module.m"},
                     {"Torch.relu_rank4.7.forward", "Module.m"},
                     {"Torch.relu.9.forward", "Module.m"},
                     {"Torch.tanh.0.forward", "Module.m"},
                     {"Module.n", ""},
                     {"Torch.relu.1.forward", "Module.n"}},
                    {{"Module.m", ""},
                     {"Torch.relu.5.forward", "Module.m"},
                     {"Torch.relu.6.forward", "Module.m"},
                     {"Torch.relu.0.backward", "Module.m"},
                     {"Torch.tanh.1.2.forward", "Module.m"}});
  const NodePairs pairs = pair_calls(trees.pair());
  // Only the first of two numbers in a row is the number of a call: names that overlap stay.
  CHECK(trees.names(pairs) == Names{{"Module.m", "Module.m"},
                                    {"Torch.relu.0.forward", "Torch.relu.5.forward"},
                                    {"Torch.relu_rank4.7.forward", "Torch.relu.6.forward"}});
  REQUIRE(pairs.warnings.size() == 1);
  CHECK(pairs.warnings[0] ==
        "Torch.relu.forward below Module.m: 3 calls in the target, 2 in the golden dump; they pair by order");
}

TEST_CASE("entries pair as given, nodes without data by their names") {
  const Trees trees({{"Apis.0", ""}, {"Torch.a", "Apis.0"}, {"Torch.b", "Apis.0"}},
                    {{"Apis.0", ""}, {"Torch.a", "Apis.0"}, {"Torch.c", ""}});
  CHECK(trees.names(pair_entries(trees.pair(), {1, kNoEntry})) ==
        Names{{"Apis.0", "Apis.0"}, {"Torch.a", "Torch.c"}});
}

TEST_CASE("aligned entries lead their containers to each other") {
  const Trees trees(
      {{"Apis.0", ""}, {"Torch.a", "Apis.0"}, {"Apis.1", ""}, {"Torch.b", "Apis.1"}, {"Apis.2", ""}},
      {{"Apis.0", ""}, {"Torch.b", "Apis.0"}, {"Apis.2", ""}, {"Apis.1", ""}});
  CHECK(trees.names(pair_aligned(trees.pair(), {kNoEntry, 0})) ==
        Names{{"Apis.1", "Apis.0"}, {"Apis.2", "Apis.2"}, {"Torch.b", "Torch.b"}});
}

TEST_CASE("golden nodes take the micro steps of their partners, and all below follow") {
  Trees trees({{"Module.a", ""}},
              {{"Module.a", ""}, {"Torch.x", "Module.a"}, {"Module.b.7", ""}, {"Torch.y", ""}});
  trees.target.node(trees.target.find("Module.a")).micro_step = 3;
  trees.golden.node(trees.golden.find("Module.b.7")).micro_step = 2;
  ModelTree& golden = trees.golden;
  pair_micro_steps(trees.target, golden, pair_names(trees.pair(), false));
  std::vector<std::uint32_t> steps;
  for (NodeIndex node = 2; node < golden.size(); ++node) steps.push_back(golden.node(node).micro_step);
  CHECK(steps == std::vector<std::uint32_t>{3, 3, 2, 0});
}

}  // namespace msprobe::graph_node_pairs_test
