// SPDX-License-Identifier: Apache-2.0
#include "graph/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "dump/tree.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

namespace fs = std::filesystem;
using dump::TreeKind;

using StepAndRank = std::pair<std::int64_t, std::int64_t>;

struct GraphFolder {
  std::string step_name;  // empty: the run has no steps
  std::string label;
  std::string folder;
};

/// The folders of the ranks of one dump.
struct DumpFolders {
  TreeKind kind = TreeKind::rank;
  std::string path;
  std::map<StepAndRank, GraphFolder> ranks;
};

std::string_view words_of(TreeKind kind) {
  if (kind == TreeKind::root) return "folders of steps";
  return kind == TreeKind::step ? "folders of ranks" : "the files of one rank";
}

/// A rank's folder may lack one of the files; the reader then reports which one.
bool is_rank_folder(const std::string& path) {
  return path_exists(path + "/construct.json") || path_exists(path + "/dump.json");
}

DumpFolders folders_of(const std::string& path, GraphPlan& plan) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw IoError(display(path), "does not exist");
  if (!fs::is_directory(status)) throw UsageError(display(path) + ": not a dump folder");
  DumpFolders found;
  found.path = path;
  if (is_rank_folder(path)) {
    found.ranks[{0, 0}] = {"", "", path};
    return found;
  }
  const dump::Tree tree = dump::discover(path);
  found.kind = tree.kind;
  for (const dump::StepDump& step : tree.steps) {
    for (const dump::RankDump& rank : step.ranks) {
      // A rank without a number, and the only process of a run, count as rank 0.
      const StepAndRank key = {step.number.value_or(0), std::max<std::int64_t>(rank.number.value_or(0), 0)};
      const std::string label = step.label.empty() ? rank.label : step.label + "/" + rank.label;
      const auto [known, is_new] =
          found.ranks.try_emplace(key, GraphFolder{step.label, label, rank.directory});
      if (!is_new) {
        plan.problems.push_back(fmt::format("{}: rank {} again, as {}", display(rank.directory), key.second,
                                            display(known->second.label)));
      }
    }
  }
  return found;
}

bool has_step(const DumpFolders& dump, std::int64_t step) {
  const auto at = dump.ranks.lower_bound({step, 0});
  return at != dump.ranks.end() && at->first.first == step;
}

/// Warns about ranks that `dump` has and the other side lacks, with one line for a whole step.
void tell_one_sided(const DumpFolders& dump, const DumpFolders& other, GraphPlan& plan) {
  const std::string* told = nullptr;
  for (const auto& [key, rank] : dump.ranks) {
    if (other.ranks.contains(key)) continue;
    const bool whole_step = !has_step(other, key.first);
    if (whole_step && told != nullptr && *told == rank.step_name) continue;
    plan.warnings.push_back(fmt::format("{}: {} has no partner in {} and was skipped", display(dump.path),
                                        display(whole_step ? rank.step_name : rank.label),
                                        display(other.path)));
    told = whole_step ? &rank.step_name : nullptr;
  }
}

}  // namespace

GraphPlan make_plan(const std::string& target, const std::string& golden) {
  GraphPlan plan;
  const DumpFolders ours = folders_of(target, plan);
  plan.one_folder = ours.kind == TreeKind::rank;
  if (golden.empty()) {
    for (const auto& [key, rank] : ours.ranks)
      plan.graphs.push_back({key.first, key.second, rank.label, rank.folder, ""});
    return plan;
  }
  const DumpFolders theirs = folders_of(golden, plan);
  if (ours.kind != theirs.kind) {
    throw UsageError(fmt::format("{} holds {}, {} holds {}", display(target), words_of(ours.kind),
                                 display(golden), words_of(theirs.kind)),
                     "give folders of the same kind");
  }
  for (const auto& [key, rank] : ours.ranks) {
    const auto partner = theirs.ranks.find(key);
    if (partner != theirs.ranks.end())
      plan.graphs.push_back({key.first, key.second, rank.label, rank.folder, partner->second.folder});
  }
  if (plan.graphs.empty())
    throw UsageError(fmt::format("{} and {} have no rank in common", display(target), display(golden)));
  tell_one_sided(ours, theirs, plan);
  tell_one_sided(theirs, ours, plan);
  return plan;
}

}  // namespace msprobe::graph
