// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/format.h>

#include "graph/pair/rank_pair.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"
#include "graph/rank_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

void write_one(const GraphPlace& place, const GraphOptions& options, GraphJob& job) {
  const RankGraph graph = read_rank_graph(place.target);
  job.write(place, RankSource(graph, options.data, options.overflow_check));
  job.tell_unconnected(graph);
}

void write_pair(const GraphPlace& place, const GraphOptions& options, GraphJob& job) {
  const GraphRankPair pair(place.target, place.golden, options, job.history(place.rank));
  const std::optional<ComparedBy> before = job.extent().task;
  if (!options.as_vis && before && *before != pair.graphs().task())
    throw FormatError(fmt::format("{}: compared by a different kind of data than the ranks before it",
                                  display(place.target)));
  job.write(place, pair.graphs());
  job.tell_unconnected(pair.target());
  job.tell_unconnected(pair.golden());
}

}  // namespace

GraphResult build_graph(const GraphOptions& options, const GraphProgress& progress) {
  const GraphPlan plan = make_plan(options.target, options.golden);
  GraphJob job(options, plan.graphs.size(), !plan.one_folder, progress);
  job.result.warnings = plan.warnings;
  job.result.problems = plan.problems;
  for (const GraphPlace& place : plan.graphs) {
    job.output().begin(place);
    try {
      options.compares() ? write_pair(place, options, job) : write_one(place, options, job);
    } catch (const Error& error) {
      if (job.output().failed() || plan.graphs.size() == 1) throw;
      job.output().take_back();
      job.result.problems.emplace_back(error.what());
    }
    job.end_part();
  }
  return job.finish();
}

}  // namespace msprobe::graph
