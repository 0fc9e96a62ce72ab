// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <system_error>

#include "graph/database/database.hpp"
#include "graph/database/graph_rows.hpp"
#include "graph/rank_graph.hpp"
#include "graph/rank_source.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// By the local time; a file that is there already is left alone.
std::string result_path(const std::string& folder) {
  const std::time_t now = std::time(nullptr);
  const std::string stem = fmt::format("{}/build_{:%Y%m%d%H%M%S}", folder, fmt::localtime(now));
  std::string path = stem + ".vis.db";
  std::error_code ignored;
  for (int number = 1; std::filesystem::exists(path, ignored); ++number)
    path = fmt::format("{}_{}.vis.db", stem, number);
  return path;
}

}  // namespace

GraphResult build_graph(const GraphOptions& options) {
  const RankGraph graph = read_rank_graph(options.target, options.tree);
  GraphResult result;
  for (const std::string& name : graph.built.unconnected) {
    result.warnings.push_back(fmt::format("{}: {} is connected to nothing; it stands below the root",
                                          display(graph.folder + "/construct.json"), display(name)));
  }
  if (options.tree.lose_unconnected) result.warnings.clear();
  create_directories(options.output);
  result.file = result_path(options.output);
  Database database(result.file);
  result.nodes = write_graph({}, RankSource(graph, options.data, options.overflow_check), database);
  ConfigRow config;
  config.graph_type = "build";
  config.micro_steps = graph.built.tree.micro_steps;
  config.overflow_check = options.overflow_check;
  config.node_colors = "null";
  config.rank_list = "[0]";
  config.step_list = "[0]";
  database.add(config);
  database.commit();
  return result;
}

}  // namespace msprobe::graph
