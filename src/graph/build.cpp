// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "graph/config.hpp"
#include "graph/database/database.hpp"
#include "graph/database/graph_rows.hpp"
#include "graph/pair/rank_pair.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"
#include "graph/rank_source.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// What is known of a graph, or of a pair, when it is written.
struct Written {
  std::size_t nodes = 0;
  std::uint32_t micro_steps = 0;
  std::optional<ComparedBy> task;
  std::vector<std::pair<std::string_view, RankCalls>> calls;  // by side
  NodeTally tally;                                            // of a pair
  std::vector<std::string> warnings;
  std::vector<std::string> unconnected;
};

void append(std::vector<std::string>& lines, std::vector<std::string>&& more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

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
    if (result_.ranks == 0) return std::move(result_);
    finish(database);
    result_.file = path;
    return std::move(result_);
  }

 private:
  bool compares() const { return !options_.golden.empty(); }
  std::string_view type() const { return compares() ? "compare" : "build"; }

  /// Leaves nothing of a rank that cannot be read to its end.
  void write_or_note(const GraphPlace& place, Database& database) {
    const Database::Mark before = database.mark();
    try {
      note(place, compares() ? write_pair(place, database) : write_one(place, database));
    } catch (const Error& error) {
      if (database.failed() || plan_.graphs.size() == 1) throw;
      database.go_back(before);
      result_.problems.emplace_back(error.what());
    }
  }

  void note(const GraphPlace& place, Written&& graph) {
    const bool is_first = result_.ranks++ == 0;
    result_.nodes += graph.nodes;
    append(result_.warnings, std::move(graph.warnings));
    append(result_.unconnected, std::move(graph.unconnected));
    for (auto& [side, calls] : graph.calls) edges_.add(side, place.step, place.rank, std::move(calls));
    extent_.task = graph.task;
    if (compares()) {
      if (!result_.tally) result_.tally.emplace();
      result_.tally->add(graph.tally);
    }
    extent_.steps.insert(place.step);
    if (is_first || !options_.config.of_first_graph)
      extent_.micro_steps = std::max(extent_.micro_steps, graph.micro_steps);
    if (place.step == *extent_.steps.begin() || !options_.config.of_first_graph)
      extent_.ranks.insert(place.rank);
  }

  Written write_one(const GraphPlace& place, Database& database) const {
    const RankGraph graph = read_rank_graph(place.target, options_.tree);
    const RankSource source(graph, options_.data, options_.overflow_check);
    Written written;
    written.micro_steps = graph.built.tree.micro_steps;
    tell_unconnected(graph, written);
    write_side("NPU", place, source, database, written);
    return written;
  }

  Written write_pair(const GraphPlace& place, Database& database) {
    const RankPair pair(place.target, place.golden,
                        {options_.overflow_check, options_.tree, options_.data, options_.pair},
                        options_.origins ? &histories_[place.rank] : nullptr);
    if (extent_.task && *extent_.task != pair.task()) {
      throw FormatError(fmt::format("{}: is compared by another kind of data than the ranks before it",
                                    display(place.target)));
    }
    Written written;
    written.micro_steps = pair.micro_steps();
    written.task = pair.task();
    for (const std::string& warning : pair.warnings())
      written.warnings.push_back(place.label.empty() ? warning : display(place.label) + ": " + warning);
    tell_unconnected(pair.target_graph(), written);
    tell_unconnected(pair.golden_graph(), written);
    write_side("NPU", place, pair.target(), database, written);
    write_side("Bench", place, pair.golden(), database, written);
    return written;
  }

  void tell_unconnected(const RankGraph& graph, Written& written) const {
    if (options_.tree.lose_unconnected) return;
    append(written.unconnected, unconnected_lines(graph));
  }

  void write_side(std::string_view side, const GraphPlace& place, const NodeSource& source,
                  Database& database, Written& written) const {
    const auto nodes = static_cast<double>(source.tree().size() - 1);
    if (progress_.line != nullptr) {
      progress_.line->begin(place.label.empty() ? "graph" : display(place.label), source.tree().size() - 1,
                            "nodes");
    }
    const std::size_t sides_before = written.calls.size();
    RankCalls& calls = written.calls.emplace_back(side, RankCalls(options_.overflow_check)).second;
    std::size_t so_far = 0;
    GraphObserver observer;
    observer.written = [&](std::size_t more) {
      so_far += more;
      if (progress_.line != nullptr) progress_.line->advance(more);
      if (progress_.tell) tell(static_cast<double>(sides_before) + static_cast<double>(so_far) / nodes);
    };
    observer.node = [&](std::int64_t row, std::string_view node, const NodeData& data) {
      calls.add(row, node, data);
      if (sides_before == 0) {
        written.tally.add_target(place.label, node, data);
      } else {
        written.tally.add_golden(node, data);
      }
    };
    written.nodes += write_graph({side, place.step, place.rank}, source, database, observer);
  }

  /// `sides`: of the graph that is being written.
  void tell(double sides) const {
    const double done = static_cast<double>(done_) + sides / (compares() ? 2 : 1);
    progress_.tell(100 * done / static_cast<double>(plan_.graphs.size()));
  }

  void finish(Database& database) {
    if (!plan_.one_folder) edges_.write(database);
    write_config(extent_, options_.overflow_check, database);
    database.commit();
    if (progress_.line != nullptr) progress_.line->end();
  }

  const GraphOptions& options_;
  const GraphProgress& progress_;
  Plan plan_;
  GraphResult result_;
  std::size_t done_ = 0;  // graphs
  Edges edges_;
  std::map<std::int64_t, diagnosis::RankHistory> histories_;  // of the ranks, step by step
  GraphExtent extent_;
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
