// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/rank_pairs.hpp"

#include <algorithm>
#include <filesystem>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::RankDump;
using dump::StepDump;
using dump::Tree;
using dump::TreeKind;

std::string_view kind_name(TreeKind kind) {
  switch (kind) {
    case TreeKind::file:
      return "a file";
    case TreeKind::rank:
      return "the folder of a rank";
    case TreeKind::step:
      return "the folder of a step";
    case TreeKind::root:
      break;
  }
  return "a dump root";
}

std::string place(const std::string& step, const std::string& rank) {
  return step.empty() ? rank : step + "/" + rank;
}

void pair_by_position(const std::string& step, const StepDump& target, const StepDump& golden,
                      RankPairs& plan) {
  const std::size_t common = std::min(target.ranks.size(), golden.ranks.size());
  for (std::size_t i = 0; i < common; ++i) plan.pairs.push_back({step, target.ranks[i], golden.ranks[i]});
  for (std::size_t i = common; i < target.ranks.size(); ++i) {
    plan.one_sided.push_back(place(step, target.ranks[i].label) + ": only in the target");
  }
  for (std::size_t i = common; i < golden.ranks.size(); ++i) {
    plan.one_sided.push_back(place(step, golden.ranks[i].label) + ": only in the golden side");
  }
}

void pair_step(const std::string& step, const StepDump& target, const StepDump& golden, bool by_position,
               RankPairs& plan) {
  const auto partner = [&](const RankDump& rank, const std::vector<RankDump>& others) {
    return std::find_if(others.begin(), others.end(),
                        [&](const RankDump& other) { return rank.number && other.number == rank.number; });
  };
  const bool any_number = std::any_of(target.ranks.begin(), target.ranks.end(), [&](const RankDump& rank) {
    return partner(rank, golden.ranks) != golden.ranks.end();
  });
  if (by_position || !any_number) {
    const bool same_names = target.ranks.size() == 1 && golden.ranks.size() == 1;
    if (!by_position && !same_names) {
      plan.remarks.push_back("no rank number is common to both sides" + (step.empty() ? "" : " in " + step) +
                             "; ranks are paired by position");
    }
    pair_by_position(step, target, golden, plan);
    return;
  }
  for (const RankDump& rank : target.ranks) {
    const auto other = partner(rank, golden.ranks);
    if (other == golden.ranks.end()) {
      plan.one_sided.push_back(place(step, rank.label) + ": only in the target");
    } else {
      plan.pairs.push_back({step, rank, *other});
    }
  }
  for (const RankDump& rank : golden.ranks) {
    if (partner(rank, target.ranks) == target.ranks.end()) {
      plan.one_sided.push_back(place(step, rank.label) + ": only in the golden side");
    }
  }
}

/// Ranks that have a debug.json besides the dump.json give two results, as 8.1.1 does.
void add_saved_values(RankPairs& plan) {
  const std::size_t count = plan.pairs.size();
  for (std::size_t i = 0; i < count; ++i) {
    RankPair pair = plan.pairs[i];
    if (dump::is_debug_json(pair.target.json) || dump::is_debug_json(pair.golden.json)) continue;
    pair.target.json = pair.target.directory + "/debug.json";
    pair.golden.json = pair.golden.directory + "/debug.json";
    std::error_code ignored;
    if (std::filesystem::exists(pair.target.json, ignored) &&
        std::filesystem::exists(pair.golden.json, ignored)) {
      plan.pairs.push_back(std::move(pair));
    }
  }
}

}  // namespace

RankPairs pair_ranks(const Tree& target, const Tree& golden, bool by_position) {
  const auto single = [](TreeKind kind) { return kind == TreeKind::file || kind == TreeKind::rank; };
  if (target.kind != golden.kind && !(single(target.kind) && single(golden.kind))) {
    throw UsageError("target and golden must be of the same kind: " + display(target.path) + " is " +
                     std::string(kind_name(target.kind)) + ", " + display(golden.path) + " is " +
                     std::string(kind_name(golden.kind)));
  }
  RankPairs plan;
  if (single(target.kind)) {
    plan.pairs.push_back({"", target.steps[0].ranks[0], golden.steps[0].ranks[0]});
    if (target.kind == TreeKind::rank && golden.kind == TreeKind::rank) add_saved_values(plan);
    return plan;
  }
  if (target.kind == TreeKind::step) {
    pair_step("", target.steps[0], golden.steps[0], by_position, plan);
    add_saved_values(plan);
    return plan;
  }
  for (const StepDump& step : target.steps) {
    const auto other = std::find_if(golden.steps.begin(), golden.steps.end(),
                                    [&](const StepDump& one) { return one.number == step.number; });
    if (other == golden.steps.end()) {
      plan.one_sided.push_back(step.label + ": only in the target");
    } else {
      pair_step(step.label, step, *other, by_position, plan);
    }
  }
  for (const StepDump& step : golden.steps) {
    const bool common = std::any_of(target.steps.begin(), target.steps.end(),
                                    [&](const StepDump& one) { return one.number == step.number; });
    if (!common) plan.one_sided.push_back(step.label + ": only in the golden side");
  }
  add_saved_values(plan);
  if (plan.pairs.empty()) {
    throw FormatError("the two dumps have no step in common: " + display(target.path) + ", " +
                      display(golden.path));
  }
  return plan;
}

}  // namespace msprobe::compare
