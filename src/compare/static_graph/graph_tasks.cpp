// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_tasks.hpp"

#include <fmt/format.h>

#include "compare/lists/list_rows.hpp"

namespace msprobe::compare {

Plan plan_static_graphs(const FoundGraphs& target, const FoundGraphs& golden, const GraphSelection& selection,
                        const GraphTraits& traits, const MeasureTraits& measure, Progress* progress) {
  GraphPlan graphs = plan_graphs(target, golden, selection);
  Plan plan;
  plan.one_at_a_time = true;
  plan.one_sided = std::move(graphs.one_sided);
  for (GraphPair& pair : graphs.pairs) {
    const auto [rank, step] = pair.place;
    Task& task = plan.tasks.emplace_back();
    task.label = fmt::format("rank {} step {}", rank, step);
    task.suffix = fmt::format("_{}_{}", rank, step);
    task.target = pair.target.front();
    task.golden = pair.golden.front();
    task.run = [pair = std::move(pair), traits, measure, progress] {
      GraphResult result = compare_graphs(pair, traits, measure, progress);
      const Mode mode = result.mode == GraphMode::tensors ? Mode::tensor : Mode::statistics;
      return std::make_shared<ListRows>(mode, std::move(result.list));
    };
  }
  return plan;
}

}  // namespace msprobe::compare
