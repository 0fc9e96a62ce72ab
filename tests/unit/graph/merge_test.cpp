// SPDX-License-Identifier: Apache-2.0
// How ranks make up groups, and what nodes of several ranks are called.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/merge/merge_graph.hpp"
#include "graph/merge/merge_steps.hpp"
#include "graph/merge/parallel_plan.hpp"
#include "support/error.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::graph {
namespace {

std::vector<MergeRank> ranks_from(std::int64_t first, std::size_t count) {
  std::vector<MergeRank> ranks(count);
  for (std::size_t i = 0; i < count; ++i) ranks[i].number = first + static_cast<std::int64_t>(i);
  return ranks;
}

std::string refusal_of(const ParallelPlan& plan, std::size_t ranks) {
  return test::message_of<UsageError>([&] { check_plan(plan, ranks, "target: "); }, "");
}

TEST_CASE("merge: groups by the order of the dimensions") {
  const auto ranks = ranks_from(0, 8);
  ParallelPlan plan{.rank_size = 8, .tp = 2, .pp = 2};
  ParallelGroups groups = find_groups(plan, ranks);
  CHECK(groups.tp == RankGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(groups.pp == RankGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups.warnings.empty());

  plan.order = "pp-tp-dp";
  groups = find_groups(plan, ranks);
  CHECK(groups.pp == RankGroups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(groups.tp == RankGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});

  plan.order = "dp-tp-pp";
  groups = find_groups(plan, ranks);
  CHECK(groups.tp == RankGroups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(groups.pp == RankGroups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("merge: ranks need not begin at 0") {
  const ParallelGroups groups = find_groups({.rank_size = 4, .tp = 2, .pp = 1}, ranks_from(16, 4));
  CHECK(groups.tp == RankGroups{{16, 17}, {18, 19}});
}

TEST_CASE("merge: sizes that do not go together") {
  CHECK(refusal_of({.rank_size = 8, .tp = 2, .pp = 2}, 8).empty());
  CHECK(refusal_of({.rank_size = 8, .tp = 2, .pp = 2}, 4) ==
        "target: --rank_size is 8, but there are 4 ranks");
  CHECK(refusal_of({.rank_size = 6, .tp = 2, .pp = 2}, 6) ==
        "target: --rank_size 6 cannot be divided by --tp 2 times --pp 2");
  CHECK(refusal_of({.rank_size = 4, .tp = -2, .pp = 1}, 4) ==
        "target: --tp is -2: it must be greater than 0");
  CHECK(refusal_of({.rank_size = -1, .tp = 1, .pp = 1}, 0) ==
        "target: --rank_size is -1, but there are 0 ranks");
  // The product is more than an int holds.
  CHECK(refusal_of({.rank_size = 65536, .tp = 65536, .pp = 65536}, 65536) ==
        "target: --rank_size 65536 cannot be divided by --tp 65536 times --pp 65536");
  CHECK(refusal_of({.rank_size = 2, .tp = 2, .pp = 1, .vpp = 1, .order = "tp--pp"}, 2) ==
        "target: --order:  must be one of tp, cp, ep, dp and pp, and only once");
}

TEST_CASE("merge: numbers of layers in names") {
  CHECK(with_layer("Module.a.layers.3.b.layers.4.C.forward.0", 17) ==
        "Module.a.layers.17.b.layers.4.C.forward.0");
  CHECK(with_layer("Module.multilayer.0.C.forward.0", 5) == "Module.multilayer.5.C.forward.0");
  for (const std::string name :
       {"Module.layers.x.C.forward.0", "Module.layers.3", "Module.layers..C", "layer", "layers."}) {
    CHECK(!find_layer(name));
    CHECK(with_layer(name, 1) == name);
  }
}

TEST_CASE("merge: names of operations with their rank") {
  CHECK(name_with_rank("Torch.square.0.forward", 12) == "Torch.square_rank12.0.forward");
  CHECK(name_with_rank("odd", 1) == "odd_rank1");
  CHECK(is_name_with_rank("Torch.square_rank12.0.forward"));
  CHECK(!is_name_with_rank("Torch.square_rank.0.forward"));
  CHECK(!is_name_with_rank("Torch.square.0_rank3.forward"));
}

}  // namespace
}  // namespace msprobe::graph
