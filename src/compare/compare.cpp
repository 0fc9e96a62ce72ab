// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compare/atb/atb_compare.hpp"
#include "compare/dump_tree/dump_tree.hpp"
#include "compare/single_save/single_save.hpp"
#include "compare/sinks/data_mapping.hpp"
#include "compare/sinks/html_page.hpp"
#include "compare/sinks/markdown.hpp"
#include "compare/sinks/tables.hpp"
#include "compare/sinks/texts.hpp"
#include "compare/spread.hpp"
#include "compare/static_graph/graph_compare.hpp"
#include "dump/look.hpp"
#include "dump/tree_everywhere.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/option_list.hpp"
#include "support/progress.hpp"
#include "support/result_name.hpp"
#include "support/team.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using pairing::Rules;

enum class InputLayout {
  dump_trees,     // with dump.json or debug.json
  static_graphs,  // kernels of MindSpore's static graph
  single_saves,   // arrays saved one by one
  atb,
  mixed,  // folders of dynamic and static graphs: each folder of a part is a separate dump
};

struct ClassifiedPair {
  InputLayout layout = InputLayout::dump_trees;
  dump::Look target;  // not filled in for mixed dumps and those of ATB
  dump::Look golden;
  std::vector<std::string> parts;  // folders of mixed dumps that both have
};

std::vector<std::string> mixed_parts(const Inputs& inputs) {
  std::vector<std::string> parts;
  for (const char* part : {"graph", "pynative"}) {
    if (is_folder(inputs.target + "/" + part) && is_folder(inputs.golden + "/" + part))
      parts.emplace_back(part);
  }
  return parts;
}

/// --rank and --step choose parts of a static-graph dump; inside a part they apply only where it has no tree.
bool asks_for_graph(const Inputs& inputs, bool parted) {
  return inputs.graph && !(parted && dump::search_tree(inputs.target).tree);
}

/// Rejects --rank and --step for a dump with a dump.json: it has no parts to choose, only folders to name as
/// paths.
void refuse_tree(const std::string& path, const dump::GraphSearch& graph) {
  if (!graph.folders.empty() || !graph.problem.empty()) return;
  const std::optional<dump::Tree> tree = dump::search_tree(path).tree;
  if (!tree) return;
  std::string below = path;
  while (below.size() > 1 && below.back() == '/') below.pop_back();
  if (!tree->steps[0].label.empty()) below += "/" + tree->steps[0].label;
  const std::string& rank = tree->steps[0].ranks[0].label;
  if (tree->kind != dump::TreeKind::rank && !rank.empty() && tree->kind != dump::TreeKind::root)
    below += "/" + rank;
  throw UsageError(
      "--rank and --step choose parts of a static-graph dump, and " + display(path) + " is not one",
      tree->kind == dump::TreeKind::rank
          ? "leave them out: that is already the folder of one rank"
          : "pass the folder of a step or rank on both sides instead: " + display(below));
}

/// For paths on the local disks of several machines: only dumps with a dump.json. Throws as
/// discover_everywhere() does.
ClassifiedPair classify_everywhere(const Inputs& inputs) {
  if (inputs.atb || inputs.graph) throw UsageError("--local supports only dumps with a dump.json");
  ClassifiedPair found;
  found.target.tree.tree = dump::discover_everywhere(inputs.target, dump::RankNames::exact, true);
  found.golden.tree.tree = dump::discover_everywhere(inputs.golden, dump::RankNames::exact, true);
  return found;
}

/// Throws UsageError if such paths cannot have the requested parts, and IoError or FormatError if they hold
/// no known dump. `parted`: the paths are inside a part of mixed dumps, which has no parts itself.
ClassifiedPair classify(const Inputs& inputs, bool parted = false) {
  const bool folders = is_folder(inputs.target) && is_folder(inputs.golden);
  ClassifiedPair found;
  if (inputs.atb) {
    if (!folders) throw UsageError("-m atb needs folders with a statistic.csv");
    found.layout = InputLayout::atb;
    return found;
  }
  if (inputs.graph && !folders) {
    throw UsageError("--rank and --step choose parts of a static-graph dump: both paths must be folders");
  }
  if (folders && !parted) found.parts = mixed_parts(inputs);
  if (!found.parts.empty()) {
    found.layout = InputLayout::mixed;
    return found;
  }
  if (asks_for_graph(inputs, parted)) {
    found.layout = InputLayout::static_graphs;
    found.target.graph = dump::find_graph_folders(inputs.target);
    found.golden.graph = dump::find_graph_folders(inputs.golden);
    refuse_tree(inputs.target, found.target.graph);
    refuse_tree(inputs.golden, found.golden.graph);
    return found;
  }
  found.target = dump::look_at(inputs.target);
  found.golden = dump::look_at(inputs.golden);
  if (found.target.layout == found.golden.layout) {
    if (found.target.layout == dump::Layout::saved_arrays) found.layout = InputLayout::single_saves;
    if (found.target.layout == dump::Layout::static_graph) found.layout = InputLayout::static_graphs;
  }
  if (found.layout == InputLayout::dump_trees) {
    found.target.tree.check();
    found.golden.tree.check();
  }
  return found;
}

TaskPlan make_plan(const ClassifiedPair& found, const CompareOptions& options, const Rules& rules,
                   Progress* progress) {
  const Inputs& inputs = options.inputs;
  switch (found.layout) {
    case InputLayout::static_graphs:
      return plan_static_graphs({inputs.target, found.target.graph}, {inputs.golden, found.golden.graph},
                                inputs.graph.value_or(GraphSelection{}), progress);
    case InputLayout::single_saves:
      return plan_single_saves({inputs.target, found.target.saved.tags},
                               {inputs.golden, found.golden.saved.tags}, progress);
    case InputLayout::atb:
      return plan_atb(inputs.target, inputs.golden, progress);
    default:
      return plan_dump_trees(*found.target.tree.tree, *found.golden.tree.tree, options.rank, options.python,
                             rules, progress);
  }
}

/// The summary comes first, because other outputs add to it.
Sinks make_sinks(const CompareOptions& options, const Rules& rules, bool entries, Progress* progress) {
  const Outputs& outputs = options.outputs;
  // A file name that was asked for contains no time.
  const bool timed = outputs.file.empty() && outputs.story.entry.empty();
  const std::string time = timed ? result_time(outputs.directory) : std::string();
  Sinks sinks;
  sinks.push_back(summary_sink(options.summary, options.rank.match, rules));
  if (options.rank.factors) sinks.push_back(factor_sink(options.rank.factors, options.factors_file));
  if (!outputs.story.entry.empty()) {
    sinks.push_back(story_sink(outputs.story));
    return sinks;
  }
  if (entries && options.rank.match.method == pairing::Method::layer && outputs.file.empty())
    sinks.push_back(data_mapping_sink(outputs.directory, time));
  if (!outputs.formats.empty())
    sinks.push_back(table_sink({outputs.directory, outputs.file, outputs.existing, outputs.formats,
                                outputs.formats_chosen, time, progress}));
  if (entries && !outputs.suggest_mapping.empty())
    sinks.push_back(mapping_proposal_sink(outputs.suggest_mapping, outputs.existing));
  if (entries && !outputs.map_parameters.empty())
    sinks.push_back(parameter_mapping_sink(outputs.map_parameters, outputs.existing));
  for (const std::string& name : outputs.texts) {
    const TextFormat& format = *text_format(name);
    const std::string path =
        outputs.file.empty() ? fmt::format("{}/compare_result_{}.{}", outputs.directory, time, format.ending)
                             : outputs.file;
    sinks.push_back(name == kHtml       ? html_sink(path, outputs.existing, progress)
                    : name == kMarkdown ? markdown_sink(path, outputs.existing)
                                        : text_sink(format, path, outputs.existing));
  }
  return sinks;
}

CompareReport run(const TaskPlan& plan, const Sinks& sinks, const std::string& mapping_file,
                  Progress* progress) {
  CompareReport report;
  report.one_sided = plan.one_sided;
  report.mapping_file = mapping_file;
  report.tasks.resize(plan.tasks.size());
  if (team().computes()) {
    for (const std::unique_ptr<Sink>& sink : sinks) sink->begin(plan);
  }
  run_tasks(plan, sinks, report, progress);
  if (!team().is_root()) return report;
  for (const std::unique_ptr<Sink>& sink : sinks) sink->end(report);
  if (progress != nullptr) progress->end();
  return report;
}

void refuse_pairing(const CompareOptions& options) {
  const pairing::MatchOptions& match = options.rank.match;
  const bool pairing = match.method != pairing::Method::exact || match.fuzzy ||
                       !options.outputs.suggest_mapping.empty() || !options.outputs.map_parameters.empty();
  if (!pairing) return;
  throw UsageError(
      "these dumps are paired by file name: leave out -fm, -am, -cm, -dm, -lm, "
      "--suggest-mapping and --map-parameters");
}

CompareReport compare_found(const ClassifiedPair& found, const CompareOptions& options, const Rules& rules,
                            Progress* progress) {
  const TaskPlan plan = make_plan(found, options, rules, progress);
  if (!plan.entries && options.rank.diagnosis.first)
    throw UsageError("--first needs dumps with a dump.json: only their entries are diagnosed");
  if (!plan.entries && options.rank.merge_ranks)
    throw UsageError("--merge-ranks needs dumps with a dump.json: only it describes what each rank holds");
  if (!plan.entries && options.rank.factors)
    throw UsageError("--config needs dumps with a dump.json: it names their data files");
  if (!plan.entries) refuse_pairing(options);
  if (!plan.entries && options.python_rules)
    report_without_effect("compare", "--python-rules", " on dumps without a dump.json");
  const Sinks sinks = make_sinks(options, rules, plan.entries, progress);
  std::error_code ignored;
  const bool replaced = std::filesystem::is_regular_file(options.outputs.file, ignored);
  CompareReport report = run(plan, sinks, options.rank.match.mapping_file, progress);
  report.replaced = replaced;
  return report;
}

void report_missing(const std::string& part, const std::vector<std::string>& here,
                    const std::vector<std::string>& there, const char* where, CompareReport& report) {
  for (const std::string& name : here) {
    if (!std::binary_search(there.begin(), there.end(), name))
      report.one_sided.push_back(part + "/" + name + ": only in " + where);
  }
}

/// Compares one folder of a part as if it had been given.
void compare_part(const std::string& place, const CompareOptions& options, const Rules& rules,
                  Progress* progress, CompareReport& all) {
  CompareOptions inner = options;
  inner.inputs.target += "/" + place;
  inner.inputs.golden += "/" + place;
  inner.outputs.directory += "/" + place;
  try {
    CompareReport report = compare_found(classify(inner.inputs, true), inner, rules, progress);
    for (TaskSummary& task : report.tasks) {
      task.label = task.label.empty() ? place : place + " " + task.label;
      all.tasks.push_back(std::move(task));
    }
    for (const std::string& line : report.one_sided) all.one_sided.push_back(place + " " + line);
    for (const std::string& line : report.not_multiplied) all.not_multiplied.push_back(place + " " + line);
  } catch (const Error& error) {
    TaskSummary& failed = all.tasks.emplace_back();
    failed.label = place;
    failed.target = inner.inputs.target;
    failed.golden = inner.inputs.golden;
    failed.failure = error.what();
  }
}

/// Each folder of a part, usually a step, is a separate dump.
CompareReport compare_parts(const std::vector<std::string>& parts, const CompareOptions& options,
                            const Rules& rules, Progress* progress) {
  if (!options.outputs.file.empty() && options.outputs.results() > 0) {
    throw UsageError("a dump with graph and pynative folders gives several files: pass a folder with -o");
  }
  CompareReport all;
  all.mapping_file = options.rank.match.mapping_file;
  for (const std::string& part : parts) {
    const std::vector<std::string> targets =
        names_in(options.inputs.target + "/" + part, WhichNames::folders);
    const std::vector<std::string> goldens =
        names_in(options.inputs.golden + "/" + part, WhichNames::folders);
    report_missing(part, targets, goldens, "target", all);
    report_missing(part, goldens, targets, "golden", all);
    for (const std::string& name : targets) {
      if (std::binary_search(goldens.begin(), goldens.end(), name))
        compare_part(part + "/" + name, options, rules, progress, all);
    }
  }
  if (all.tasks.empty()) {
    throw FormatError("the graph and pynative folders of the two dumps have no folder in common");
  }
  return all;
}

}  // namespace

CompareReport compare(const CompareOptions& asked, Progress* progress) {
  CompareOptions options = asked;
  pairing::load_mapping(options.rank.match);
  if (!options.factors_file.empty())
    options.rank.factors =
        std::make_shared<const measuring::TensorFactors>(RuleFile::open(options.factors_file));
  const Rules rules =
      options.rules_file.empty() ? pairing::default_rules() : pairing::load_rules(options.rules_file);
  const ClassifiedPair found =
      options.inputs.local ? classify_everywhere(options.inputs) : classify(options.inputs);
  return found.layout == InputLayout::mixed ? compare_parts(found.parts, options, rules, progress)
                                            : compare_found(found, options, rules, progress);
}

}  // namespace msprobe::compare
