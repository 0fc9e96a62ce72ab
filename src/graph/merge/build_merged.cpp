// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/build_merged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "dump/tree.hpp"
#include "graph/database/database.hpp"
#include "graph/database/graph_rows.hpp"
#include "graph/merge/json_export.hpp"
#include "graph/merge/merge_ranks.hpp"
#include "graph/merge/merged_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// The folders of ranks by their steps; a folder that holds ranks is step 0.
std::map<std::int64_t, std::string> steps_of(const std::string& folder) {
  std::map<std::int64_t, std::string> steps;
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    const auto number = dump::number_after(name, "step");
    if (!number) break;
    steps.emplace(*number, folder + "/" + name);
  }
  if (steps.size() != names.size() || names.empty()) return {{0, folder}};
  return steps;
}

std::string list_of(const std::set<std::int64_t>& numbers) {
  JsonWriter json;
  json.value(numbers);
  return json.take();
}

}  // namespace

MergeTraits merge_traits(bool python_rules) {
  MergeTraits traits;
  traits.lose_others = traits.number_all_parts = traits.first_rank_borders = python_rules;
  traits.first_rank_shards = traits.outer_linears_only = traits.only_senders = python_rules;
  return traits;
}

GraphResult build_merged(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
                         bool python_rules) {
  GraphResult result;
  std::optional<Database> database;
  std::vector<OutputFile> files;
  std::set<std::int64_t> rank_numbers;
  std::set<std::int64_t> step_numbers;
  ConfigRow config;
  config.micro_steps = 0;
  for (const auto& [step, folder] : steps_of(options.target)) {
    const auto merged = read_ranks(folder, options.tree);
    merge_ranks(*merged, plans.front(), merge_traits(python_rules), {});
    for (std::string& warning : merged->warnings) result.warnings.push_back(std::move(warning));
    for (const MergeRank& rank : merged->ranks) {
      for (const std::string& name :
           options.tree.lose_unconnected ? std::vector<std::string>() : rank.graph.built.unconnected)
        result.unconnected.push_back(fmt::format("{}: {} is connected to nothing; it stands below the root",
                                                 display(rank.graph.folder + "/construct.json"),
                                                 display(name)));
    }
    if (result.file.empty()) {
      create_directories(options.output);
      result.file = as_json ? options.output : result_path(options.output, "build");
      if (!as_json) database.emplace(result.file);
    }
    for (const auto& graph : merged->graphs) {
      const MergedSource source(graph, options.data, options.overflow_check);
      if (as_json) {
        const std::string place = fmt::format("{}/step{}/rank{}", options.output, step, graph->rank());
        result.nodes += export_json(source, place, files);
      } else {
        result.nodes += write_graph({"NPU", step, graph->rank()}, source, *database);
      }
      ++result.ranks;
      config.micro_steps = std::max<std::int64_t>(config.micro_steps, source.tree().micro_steps);
      rank_numbers.insert(graph->rank());
      step_numbers.insert(step);
    }
  }
  if (as_json) {
    OutputFile::commit_all(files);
    return result;
  }
  const std::string ranks = list_of(rank_numbers);
  const std::string step_list = list_of(step_numbers);
  config.graph_type = "build";
  config.overflow_check = options.overflow_check;
  config.node_colors = "null";
  config.rank_list = ranks;
  config.step_list = step_list;
  database->add(config);
  database->commit();
  return result;
}

}  // namespace msprobe::graph
