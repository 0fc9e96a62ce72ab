// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/dump_tree.hpp"

#include "compare/dump_tree/rank_rows.hpp"
#include "support/log.hpp"

namespace msprobe::compare {

Plan plan_dump_trees(const dump::Tree& target, const dump::Tree& golden, const RankOptions& options,
                     const RankTraits& traits, const Rules& rules, Progress* progress) {
  RankPairs ranks = pair_ranks(target, golden, traits.pairing.ranks_by_position);
  for (const std::string& remark : ranks.remarks) log_warning(remark);
  Plan plan;
  plan.entries = true;
  plan.one_sided = std::move(ranks.one_sided);
  for (RankPair& pair : ranks.pairs) {
    Task& task = plan.tasks.emplace_back();
    task.step = pair.step;
    task.rank = pair.target.label;
    task.label = pair.step.empty() ? task.rank : pair.step + "/" + task.rank;
    task.target = pair.target.json;
    task.golden = pair.golden.json;
    if (!pair.step.empty()) task.folder = pair.step + "/";
    if (dump::is_debug_json(pair.target.json)) task.prefix = "debug_";
    if (!task.rank.empty()) task.suffix = "_" + task.rank;
    task.run = [pair = std::move(pair), &options, &traits, &rules, progress] {
      return std::make_shared<RankRows>(
          std::make_shared<const RankResult>(compare_ranks(pair, options, traits, rules, progress)));
    };
  }
  return plan;
}

}  // namespace msprobe::compare
