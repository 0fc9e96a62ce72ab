// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/dump_tree.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::RankDump;
using dump::StepDump;
using dump::Tree;
using dump::TreeKind;

/// By kind.
constexpr std::array<const char*, 4> kKindNames = {"a file", "the folder of a rank", "the folder of a step",
                                                   "a dump root"};

/// Calls pair(target, golden) for what belongs together in two lists; what has no partner is one-sided.
template <typename T, typename Same, typename Visit>
void pair_up(const std::vector<T>& targets, const std::vector<T>& goldens, const std::string& place,
             std::vector<std::string>& one_sided, Same&& same, Visit&& pair) {
  for (const T& target : targets) {
    const auto other = std::ranges::find_if(goldens, [&](const T& golden) { return same(target, golden); });
    if (other == goldens.end()) {
      one_sided.push_back(place + target.label + ": only in the target");
    } else {
      pair(target, *other);
    }
  }
  for (const T& golden : goldens) {
    if (std::ranges::none_of(targets, [&](const T& target) { return same(target, golden); }))
      one_sided.push_back(place + golden.label + ": only in the golden side");
  }
}

void pair_step(const std::string& step, const StepDump& target, const StepDump& golden, bool by_position,
               RankPairs& plan) {
  const auto same_number = [](const RankDump& one, const RankDump& other) {
    return one.number && one.number == other.number;
  };
  const auto same_position = [&](const RankDump& one, const RankDump& other) {
    return &one - target.ranks.data() == &other - golden.ranks.data();
  };
  const auto add = [&](const RankDump& one, const RankDump& other) {
    plan.pairs.push_back({step, one, other});
  };
  const std::string place = step.empty() ? "" : step + "/";
  const bool any_number = std::ranges::any_of(target.ranks, [&](const RankDump& one) {
    return std::ranges::any_of(golden.ranks, [&](const RankDump& other) { return same_number(one, other); });
  });
  if (any_number && !by_position) {
    pair_up(target.ranks, golden.ranks, place, plan.one_sided, same_number, add);
    return;
  }
  if (!by_position && (target.ranks.size() != 1 || golden.ranks.size() != 1)) {
    plan.remarks.push_back("no rank number is common to both sides" + (step.empty() ? "" : " in " + step) +
                           "; ranks are paired by position");
  }
  pair_up(target.ranks, golden.ranks, place, plan.one_sided, same_position, add);
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
                     kKindNames[static_cast<std::size_t>(target.kind)] + ", " + display(golden.path) +
                     " is " + kKindNames[static_cast<std::size_t>(golden.kind)]);
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
  pair_up(
      target.steps, golden.steps, "", plan.one_sided,
      [](const StepDump& one, const StepDump& other) { return one.number == other.number; },
      [&](const StepDump& one, const StepDump& other) {
        pair_step(one.label, one, other, by_position, plan);
      });
  add_saved_values(plan);
  if (plan.pairs.empty()) {
    throw FormatError("the two dumps have no step in common: " + display(target.path) + ", " +
                      display(golden.path));
  }
  return plan;
}

}  // namespace msprobe::compare
