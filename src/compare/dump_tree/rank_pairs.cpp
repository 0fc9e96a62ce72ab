// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compare/dump_tree/dump_tree.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using dump::RankDump;
using dump::StepDump;
using dump::Tree;
using dump::TreeKind;

/// Names by kind.
constexpr std::array<const char*, 4> kKindNames = {"a file", "the folder of a rank", "the folder of a step",
                                                   "a dump root"};

/// Calls pair(target, golden) for elements of two lists that belong together; others are one-sided.
template <typename T, typename Same, typename Visit>
void pair_up(const std::vector<T>& targets, const std::vector<T>& goldens, const std::string& place,
             std::vector<std::string>& one_sided, Same&& same, Visit&& pair) {
  for (const T& target : targets) {
    const auto other = std::ranges::find_if(goldens, [&](const T& golden) { return same(target, golden); });
    if (other == goldens.end()) {
      one_sided.push_back(place + target.label + ": only in target");
    } else {
      pair(target, *other);
    }
  }
  for (const T& golden : goldens) {
    if (std::ranges::none_of(targets, [&](const T& target) { return same(target, golden); }))
      one_sided.push_back(place + golden.label + ": only in golden");
  }
}

void pair_step(const std::string& step, const StepDump& target, const StepDump& golden, RankPairs& plan) {
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
  if (any_number) {
    pair_up(target.ranks, golden.ranks, place, plan.one_sided, same_number, add);
    return;
  }
  if (target.ranks.size() != 1 || golden.ranks.size() != 1) {
    plan.remarks.push_back("the two sides have no rank number in common" +
                           (step.empty() ? "" : " in " + step) + "; ranks are paired by position");
  }
  pair_up(target.ranks, golden.ranks, place, plan.one_sided, same_position, add);
}

/// Calls pair(target, golden) for the steps that both have.
template <typename Visit>
void pair_steps(const Tree& target, const Tree& golden, RankPairs& plan, Visit&& pair) {
  const auto same = [](const StepDump& one, const StepDump& other) { return one.number == other.number; };
  pair_up(target.steps, golden.steps, "", plan.one_sided, same, pair);
  if (plan.pairs.empty())
    throw FormatError("the two dumps have no step in common: " + display(target.path) + ", " +
                      display(golden.path));
}

/// Ranks that have a debug.json besides the dump.json give two results, as 8.1.1 does.
void add_saved_values(RankPairs& plan) {
  const std::size_t count = plan.pairs.size();
  for (std::size_t i = 0; i < count; ++i) {
    RankPair pair = plan.pairs[i];
    if (dump::is_debug_json(pair.target.json) || dump::is_debug_json(pair.golden.json)) continue;
    pair.target.json = pair.target.directory + "/debug.json";
    pair.golden.json = pair.golden.directory + "/debug.json";
    const auto is_there = [](const RankDump& rank) {
      return rank.seen ? rank.seen->saved_values : path_exists(rank.json);
    };
    if (is_there(pair.target) && is_there(pair.golden)) plan.pairs.push_back(std::move(pair));
  }
}

/// The facts that show whether a rank holds a whole model, and a whole batch.
struct Extent {
  bool communicates = false;
  std::uint64_t parameters = 0;  // elements
  std::uint64_t largest = 0;     // elements of the largest output tensor of the forward
};

Extent extent_of(const dump::Side& side) {
  Extent extent;
  bool in_forward = true;  // the tensors of an optimizer are equally large on all sides
  for (const dump::Item& item : side.items) {
    const dump::EntryName name = side.parsed_name(item.api);
    if (name.direction == dump::Direction::backward) in_forward = false;
    if (!item.is_tensor) continue;
    extent.communicates = extent.communicates || name.base.starts_with("Distributed.");
    const std::uint64_t elements = measuring::elements_of(side.text(item.shape));
    if (item.state == dump::State::parameters) extent.parameters += elements;
    if (in_forward && item.state == dump::State::output) extent.largest = std::max(extent.largest, elements);
  }
  return extent;
}

bool holds_part(const RankDump& one_of_many, const RankDump& alone) {
  if (!path_exists(one_of_many.json) || !path_exists(alone.json)) return false;
  try {
    // Two ranks have half of the batch each; the same batch with other padding is not that much smaller. This
    // value was chosen, not measured.
    constexpr double kPartOfBatch = 0.75;
    const dump::LoadOptions options{.stacks = false, .stack_json = {}};
    const dump::Side part = dump::load_side(one_of_many, options);
    const dump::Side whole = dump::load_side(alone, options);
    if (part.has_md5 || whole.has_md5) return false;
    const Extent ours = extent_of(part);
    const Extent theirs = extent_of(whole);
    return (ours.communicates && !theirs.communicates) || ours.parameters < theirs.parameters ||
           kPartOfBatch * static_cast<double>(theirs.largest) > static_cast<double>(ours.largest);
  } catch (const Error&) {
    return false;  // the comparison reports the error
  }
}

}  // namespace

bool are_parts_of_one(const Tree& target, const Tree& golden) {
  for (const StepDump& ours : target.steps) {
    for (const StepDump& theirs : golden.steps) {
      if (ours.number != theirs.number) continue;
      const bool many = ours.ranks.size() > 1;
      if (many == (theirs.ranks.size() > 1) || ours.ranks.empty() || theirs.ranks.empty()) return false;
      return many ? holds_part(ours.ranks.front(), theirs.ranks.front())
                  : holds_part(theirs.ranks.front(), ours.ranks.front());
    }
  }
  return false;
}

RankPairs pair_ranks(const Tree& target, const Tree& golden) {
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
    pair_step("", target.steps[0], golden.steps[0], plan);
    add_saved_values(plan);
    return plan;
  }
  pair_steps(target, golden, plan,
             [&](const StepDump& one, const StepDump& other) { pair_step(one.label, one, other, plan); });
  add_saved_values(plan);
  return plan;
}

RankPairs pair_merged(const Tree& target, const Tree& golden, const std::array<std::size_t, 2>& group) {
  RankPairs plan;
  const auto has_steps = [](const Tree& tree) { return tree.kind == TreeKind::root; };
  const auto groups_of = [](const StepDump& step, const Tree& tree, std::size_t size) {
    std::vector<std::vector<RankDump>> groups;
    if (size == 0) size = step.ranks.size();
    if (step.ranks.size() % size != 0) {
      throw UsageError(display(tree.path) + ": " + std::to_string(step.ranks.size()) +
                       " ranks cannot be split into models of " + std::to_string(size));
    }
    for (std::size_t i = 0; i < step.ranks.size(); i += size) {
      const auto begin = step.ranks.begin() + static_cast<std::ptrdiff_t>(i);
      groups.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    return groups;
  };
  const auto add_step = [&](const std::string& label, const StepDump& ours, const StepDump& theirs) {
    auto targets = groups_of(ours, target, group[0]);
    auto goldens = groups_of(theirs, golden, group[1]);
    if (targets.size() != goldens.size()) {
      throw UsageError("merged, target has " + std::to_string(targets.size()) + " models and golden " +
                           std::to_string(goldens.size()),
                       "--tp sets the number of ranks per model, of target and of golden");
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      RankPair& pair = plan.pairs.emplace_back();
      pair.step = label;
      pair.merged = true;
      pair.target = targets[i].front();
      pair.golden = goldens[i].front();
      if (targets.size() == 1) pair.target.label.clear();
      pair.more_targets.assign(targets[i].begin() + 1, targets[i].end());
      pair.more_goldens.assign(goldens[i].begin() + 1, goldens[i].end());
    }
  };
  if (!has_steps(target) || !has_steps(golden)) {
    if (target.steps.size() != 1 || golden.steps.size() != 1)
      throw UsageError("one side has several steps, the other only one");
    add_step("", target.steps[0], golden.steps[0]);
    return plan;
  }
  pair_steps(target, golden, plan,
             [&](const StepDump& one, const StepDump& other) { add_step(one.label, one, other); });
  return plan;
}

}  // namespace msprobe::compare
