// SPDX-License-Identifier: Apache-2.0
#include "compare/relatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "compare/atb/atb_compare.hpp"
#include "compare/output.hpp"
#include "compare/reports/row_list.hpp"
#include "compare/single_save/single_save.hpp"
#include "compare/static_graph/graph_compare.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
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

/// These results were workbooks in the Python tool.
CompareOptions with_workbook(CompareOptions options) {
  if (!options.formats_chosen) options.formats = {report::Format::xlsx};
  return options;
}

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
  if (!options.explain.empty()) throw UsageError("--explain tells of dumps with a dump.json only");
  const bool pairing = options.match.method != Method::exact || options.match.fuzzy;
  if ((pairing || !options.suggest_mapping.empty()) && !options.dialect.ignores_idle_options) {
    throw UsageError("these dumps pair by the names of their files: leave out -fm, -am, -cm, -dm, -lm and "
                     "--suggest-mapping");
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
      GraphResult result = compare_graphs(pair, options.dialect.graph, options.dialect.measure, progress);
      const Mode mode = result.mode == GraphMode::tensors ? Mode::tensor : Mode::statistics;
      return std::pair(mode, std::move(result.list));
    };
    tasks.push_back(std::move(task));
  }
  return run_tasks(tasks, std::move(plan.one_sided), options, progress);
}

CompareReport compare_single_saves(const CompareOptions& asked, Progress* progress) {
  constexpr std::size_t kMostOneSided = 20;
  const CompareOptions options = with_workbook(asked);
  const auto targets = find_saved_arrays(options.target);
  const auto goldens = find_saved_arrays(options.golden);
  std::vector<ListTask> tasks;
  std::vector<std::string> one_sided;
  const auto tell = [&](const std::string& tag, const SavedArrays& here, const SavedArrays* there,
                        const char* where) {
    std::size_t missing = 0;
    for (const auto& [key, file] : here) {
      if (there != nullptr && there->contains(key)) continue;
      if (++missing > kMostOneSided) continue;
      one_sided.push_back(fmt::format("{} {}: only in the {}", tag, saved_name(key), where));
    }
    if (missing > kMostOneSided) {
      one_sided.push_back(fmt::format("{}: {} more only in the {}", tag, missing - kMostOneSided, where));
    }
  };
  for (const auto& [tag, arrays] : targets) {
    const auto other = goldens.find(tag);
    tell(tag, arrays, other == goldens.end() ? nullptr : &other->second, "target");
    if (other == goldens.end()) continue;
    ListTask task;
    task.label = tag;
    task.file = tag;
    task.timed = false;
    task.target = options.target + "/data/" + tag;
    task.golden = options.golden + "/data/" + tag;
    task.run = [&target = arrays, &golden = other->second, &traits = options.dialect.saved, progress] {
      return std::pair(Mode::tensor, compare_saved(target, golden, traits, progress));
    };
    tasks.push_back(std::move(task));
  }
  for (const auto& [tag, arrays] : goldens) {
    const auto other = targets.find(tag);
    tell(tag, arrays, other == targets.end() ? nullptr : &other->second, "golden side");
  }
  if (tasks.empty()) throw FormatError("the two trees of saved arrays have no tag in common");
  return run_tasks(tasks, std::move(one_sided), options, progress);
}

CompareReport compare_atb_dumps(const CompareOptions& asked, Progress* progress) {
  const CompareOptions options = with_workbook(asked);
  if (!std::filesystem::is_directory(options.target) || !std::filesystem::is_directory(options.golden)) {
    throw UsageError("-m atb compares folders with a statistic.csv");
  }
  AtbResult result = compare_atb(options.target, options.golden, options.dialect.atb,
                                 options.dialect.measure, progress);
  ListTask task;
  task.target = options.target;
  task.golden = options.golden;
  task.file = result.tensors ? "atb_tensor_compare_result" : "atb_stats_compare_result";
  task.run = [&result] {
    return std::pair(result.tensors ? Mode::tensor : Mode::statistics, std::move(result.list));
  };
  return run_tasks({task}, std::move(result.one_sided), options, progress);
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

/// The parts of a dump of dynamic and static graphs, those that both have.
std::vector<std::string> mixed_parts(const CompareOptions& options) {
  std::vector<std::string> parts;
  for (const char* part : {"graph", "pynative"}) {
    std::error_code ignored;
    if (std::filesystem::is_directory(options.target + "/" + part, ignored) &&
        std::filesystem::is_directory(options.golden + "/" + part, ignored)) {
      parts.emplace_back(part);
    }
  }
  return parts;
}

/// Each folder of a part, a step mostly, is compared as if it had been given.
CompareReport compare_mixed(const CompareOptions& options, const std::vector<std::string>& parts,
                            Progress* progress) {
  if (!options.output_file.empty()) {
    throw UsageError("a dump with graph and pynative folders gives several files: name a folder with -o");
  }
  CompareReport all;
  for (const std::string& part : parts) {
    const std::vector<std::string> targets = names_in(options.target + "/" + part, Named::folders);
    const std::vector<std::string> goldens = names_in(options.golden + "/" + part, Named::folders);
    const auto only = [&](const std::vector<std::string>& here, const std::vector<std::string>& there,
                          const char* where) {
      for (const std::string& name : here) {
        if (!std::binary_search(there.begin(), there.end(), name)) {
          all.one_sided.push_back(part + "/" + name + ": only in the " + where);
        }
      }
    };
    only(targets, goldens, "target");
    only(goldens, targets, "golden side");
    for (const std::string& name : targets) {
      if (!std::binary_search(goldens.begin(), goldens.end(), name)) continue;
      const std::string place = part + "/" + name;
      CompareOptions inner = options;
      inner.nested = true;
      inner.target = options.target + "/" + place;
      inner.golden = options.golden + "/" + place;
      inner.output_directory = options.output_directory + "/" + place;
      if (inner.graph && is_dump(inner.target)) inner.graph.reset();
      try {
        CompareReport report = compare(inner, progress);
        for (RankSummary& rank : report.ranks) {
          rank.label = rank.label.empty() ? place : place + " " + rank.label;
          all.ranks.push_back(std::move(rank));
        }
        for (const std::string& line : report.one_sided) all.one_sided.push_back(place + " " + line);
      } catch (const Interrupted&) {
        throw;
      } catch (const Error& error) {
        RankSummary& failed = all.ranks.emplace_back();
        failed.label = place;
        failed.target = inner.target;
        failed.golden = inner.golden;
        failed.failure = error.what();
      }
    }
  }
  if (all.ranks.empty()) {
    throw FormatError("the graph and pynative folders of the two dumps have no folder in common");
  }
  return all;
}

}  // namespace

std::optional<CompareReport> compare_relatives(const CompareOptions& options, Progress* progress) {
  if (options.kind == DumpKind::atb) return compare_atb_dumps(options, progress);
  std::error_code ignored;
  const bool folders = std::filesystem::is_directory(options.target, ignored) &&
                       std::filesystem::is_directory(options.golden, ignored);
  if (options.graph && !folders) {
    throw UsageError("--rank and --step choose parts of a static-graph dump: both paths must be folders");
  }
  if (!folders) return std::nullopt;
  if (const auto parts = mixed_parts(options); !options.nested && !parts.empty()) {
    return compare_mixed(options, parts, progress);
  }
  if (options.graph) return compare_static_graphs(options, progress);
  if (is_dump(options.target) || is_dump(options.golden)) return std::nullopt;
  if (is_single_save(options.target) && is_single_save(options.golden)) {
    return compare_single_saves(options, progress);
  }
  if (is_graph_dump(options.target) && is_graph_dump(options.golden)) {
    return compare_static_graphs(options, progress);
  }
  return std::nullopt;
}

}  // namespace msprobe::compare
