// SPDX-License-Identifier: Apache-2.0
#include "compare/relatives.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "compare/output.hpp"
#include "compare/reports/row_list.hpp"
#include "compare/static_graph/graph_compare.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"

namespace msprobe::compare {
namespace {

/// One result of a comparison without dump.json.
struct ListTask {
  std::string label;
  std::string target;
  std::string golden;
  std::string file;  // below the output folder, without time and extension
  bool timed = true;
  std::function<std::pair<Mode, RowList>()> run;
};

std::vector<std::string> write_list(const RowList& list, const CompareOptions& options,
                                    const std::string& stem, CompareReport& report) {
  const auto table = list_table(list);
  if (options.output_file == "-") {
    report.pipe_closed = !report::write_stdout(*table, options.formats.front());
    return {};
  }
  if (!options.output_file.empty()) return write_files(*table, options, options.output_file, false);
  const std::string folder = std::filesystem::path(stem).parent_path().string();
  create_directories(folder);
  return write_files(*table, options, stem, true);
}

/// One after another: each is parallel in itself.
CompareReport run_tasks(const std::vector<ListTask>& tasks, std::vector<std::string> one_sided,
                        const CompareOptions& options, Progress* progress) {
  if (options.html) {
    throw UsageError("--format html shows dumps with a dump.json only: take csv, xlsx, json or jsonl here");
  }
  if (!options.output_file.empty() && tasks.size() > 1) {
    throw UsageError(fmt::format("there are {} results, which do not fit into one file", tasks.size()),
                     "leave out --output-file to get one file for each");
  }
  const std::string time = timestamp();
  if (options.output_file.empty()) {
    create_directories(options.output_directory);
    check_output(options.output_directory + "/compare_result_" + time);
  } else if (options.output_file != "-") {
    check_output(options.output_file);
  }
  CompareReport report;
  report.one_sided = std::move(one_sided);
  for (const ListTask& task : tasks) {
    RankSummary summary;
    try {
      const auto [mode, list] = task.run();
      summary = summarize(list, mode);
      const std::string stem = options.output_directory + "/" + task.file + (task.timed ? "_" + time : "");
      if (!list.rows.empty()) summary.files = write_list(list, options, stem, report);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      if (tasks.size() == 1) throw;
      summary = {};
      summary.failure = error.what();
    }
    summary.label = task.label;
    summary.target = task.target;
    summary.golden = task.golden;
    report.ranks.push_back(std::move(summary));
  }
  if (progress != nullptr) progress->end();
  return report;
}

CompareReport compare_static_graphs(const CompareOptions& options, Progress* progress) {
  GraphPlan plan = plan_graphs(options.target, options.golden, options.graph.value_or(GraphSelection{}));
  std::vector<ListTask> tasks;
  for (GraphPair& pair : plan.pairs) {
    ListTask task;
    const auto [rank, step] = pair.place;
    task.label = fmt::format("rank {} step {}", rank, step);
    task.file = fmt::format("compare_result_{}_{}", rank, step);
    task.target = pair.target.front();
    task.golden = pair.golden.front();
    task.run = [pair = std::move(pair), &options, progress] {
      GraphResult result = compare_graphs(pair, options.python_rules, progress);
      const Mode mode = result.mode == GraphMode::tensors ? Mode::tensor : Mode::statistics;
      return std::pair(mode, std::move(result.list));
    };
    tasks.push_back(std::move(task));
  }
  return run_tasks(tasks, std::move(plan.one_sided), options, progress);
}

/// Is there a dump with dump.json or debug.json?
bool is_dump(const std::string& path) {
  try {
    dump::discover(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::optional<CompareReport> compare_relatives(const CompareOptions& options, Progress* progress) {
  namespace fs = std::filesystem;
  if (options.graph) {
    if (!fs::is_directory(options.target) || !fs::is_directory(options.golden)) {
      throw UsageError("--rank and --step choose parts of a static-graph dump: both paths must be folders");
    }
    return compare_static_graphs(options, progress);
  }
  if (!fs::is_directory(options.target) || !fs::is_directory(options.golden)) return std::nullopt;
  if (is_dump(options.target) || is_dump(options.golden)) return std::nullopt;
  if (is_graph_dump(options.target) && is_graph_dump(options.golden)) {
    return compare_static_graphs(options, progress);
  }
  return std::nullopt;
}

}  // namespace msprobe::compare
