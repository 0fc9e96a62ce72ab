// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "graph/database/database.hpp"
#include "graph/database/graph_rows.hpp"
#include "graph/pair/rank_pair.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"
#include "graph/rank_source.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// Writes the graphs of a plan into one data base.
class GraphRun {
 public:
  GraphRun(const GraphOptions& options, const GraphProgress& progress)
      : options_(options),
        progress_(progress),
        plan_(make_plan(options.target, options.golden)),
        edges_(options.edges) {}

  GraphResult run() {
    create_directories(options_.output);
    result_.warnings = plan_.warnings;
    result_.problems = plan_.problems;
    const std::string path = result_path(options_.output, type());
    Database database(path);
    for (const GraphPlace& place : plan_.graphs) {
      write_or_note(place, database);
      ++done_;
    }
    if (result_.ranks > 0) finish(database);
    if (result_.ranks > 0) result_.file = path;
    return std::move(result_);
  }

 private:
  std::string_view type() const { return options_.golden.empty() ? "build" : "compare"; }

  /// Leaves nothing of a rank that cannot be read to its end.
  void write_or_note(const GraphPlace& place, Database& database) {
    const Database::Mark before = database.mark();
    const std::size_t unconnected = result_.unconnected.size();
    try {
      result_.nodes += write(place, database);
      ++result_.ranks;
      steps_.insert(place.step);
      if (!options_.config.of_first_graph || place.step == *steps_.begin()) ranks_.insert(place.rank);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      if (database.failed() || plan_.graphs.size() == 1) throw;
      database.go_back(before);
      result_.unconnected.resize(unconnected);
      result_.problems.emplace_back(error.what());
    }
  }

  std::size_t write(const GraphPlace& place, Database& database) {
    if (!options_.golden.empty()) return write_pair(place, database);
    const RankGraph graph = read_rank_graph(place.target, options_.tree);
    tell_unconnected(graph);
    const RankSource source(graph, options_.data, options_.overflow_check);
    const std::size_t nodes = write_side("NPU", place, source, database);
    count_micro_steps(graph.built.tree.micro_steps);
    return nodes;
  }

  std::size_t write_pair(const GraphPlace& place, Database& database) {
    const RankPair pair(place.target, place.golden,
                        {options_.overflow_check, options_.tree, options_.data, options_.pair});
    if (task_ && *task_ != pair.task()) {
      throw FormatError(fmt::format("{}: is compared by another kind of data than the ranks before it",
                                    display(place.target)));
    }
    std::size_t nodes = write_side("NPU", place, pair.target(), database);
    nodes += write_side("Bench", place, pair.golden(), database);
    tell_unconnected(pair.target_graph());
    tell_unconnected(pair.golden_graph());
    for (const std::string& warning : pair.warnings())
      result_.warnings.push_back(place.label.empty() ? warning : display(place.label) + ": " + warning);
    task_ = pair.task();
    count_micro_steps(pair.micro_steps());
    return nodes;
  }

  void tell_unconnected(const RankGraph& graph) {
    if (options_.tree.lose_unconnected) return;
    for (const std::string& name : graph.built.unconnected) {
      result_.unconnected.push_back(fmt::format("{}: {} is connected to nothing; it stands below the root",
                                                display(graph.folder + "/construct.json"), display(name)));
    }
  }

  void count_micro_steps(std::uint32_t count) {
    if (!micro_steps_ || !options_.config.of_first_graph)
      micro_steps_ = std::max(micro_steps_.value_or(0), count);
  }

  std::size_t write_side(std::string_view side, const GraphPlace& place, const NodeSource& source,
                         Database& database) {
    RankCalls calls(options_.overflow_check);
    const std::size_t nodes = source.tree().size() - 1;
    if (progress_.line != nullptr)
      progress_.line->begin(place.label.empty() ? "graph" : display(place.label), nodes, "nodes");
    std::size_t written = 0;
    GraphObserver observer;
    observer.written = [&](std::size_t more) {
      written += more;
      if (progress_.line != nullptr) progress_.line->advance(more);
      if (progress_.tell) tell(static_cast<double>(written) / static_cast<double>(nodes));
    };
    observer.node = [&](std::int64_t row, std::string_view node, const NodeData& data) {
      calls.add(row, node, data);
    };
    const std::size_t rows = write_graph({side, place.step, place.rank}, source, database, observer);
    edges_.add(side, place.step, place.rank, std::move(calls));
    return rows;
  }

  /// `part`: of the graph that is being written.
  void tell(double part) const {
    progress_.tell(100 * (static_cast<double>(done_) + part) / static_cast<double>(plan_.graphs.size()));
  }

  void finish(Database& database) {
    if (!plan_.one_folder) edges_.write(database);
    JsonWriter ranks;
    ranks.value(ranks_);
    JsonWriter steps;
    steps.value(steps_);
    const std::string rank_list = ranks.take();
    const std::string step_list = steps.take();
    ConfigRow config;
    const ComparedBy task = task_.value_or(ComparedBy::statistics);
    const std::string tip = tool_tip_of(task);
    const std::string colors = task_ ? node_colors_of(task) : "null";
    config.graph_type = type();
    if (task_) {
      config.task = task_name(task);
      config.tool_tip = tip;
    }
    config.micro_steps = micro_steps_.value_or(0);
    config.overflow_check = options_.overflow_check;
    config.node_colors = colors;
    config.rank_list = rank_list;
    config.step_list = step_list;
    database.add(config);
    if (progress_.line != nullptr) progress_.line->begin("indexes", 0, "");
    database.commit();
    if (progress_.line != nullptr) progress_.line->end();
  }

  const GraphOptions& options_;
  const GraphProgress& progress_;
  Plan plan_;
  GraphResult result_;
  std::size_t done_ = 0;  // graphs
  Edges edges_;
  std::optional<std::uint32_t> micro_steps_;
  std::optional<ComparedBy> task_;  // of the graphs that are compared
  std::set<std::int64_t> ranks_;
  std::set<std::int64_t> steps_;
};

}  // namespace

std::string result_path(const std::string& folder, std::string_view type) {
  const std::time_t now = std::time(nullptr);
  const std::string stem = fmt::format("{}/{}_{:%Y%m%d%H%M%S}", folder, type, fmt::localtime(now));
  std::string path = stem + ".vis.db";
  std::error_code ignored;
  for (int number = 1; std::filesystem::exists(path, ignored); ++number)
    path = fmt::format("{}_{}.vis.db", stem, number);
  return path;
}

GraphResult build_graph(const GraphOptions& options, const GraphProgress& progress) {
  return GraphRun(options, progress).run();
}

}  // namespace msprobe::graph
