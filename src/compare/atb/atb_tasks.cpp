// SPDX-License-Identifier: Apache-2.0
#include "compare/atb/atb_tasks.hpp"

#include "compare/atb/atb_compare.hpp"

namespace msprobe::compare {

Plan plan_atb(const std::string& target, const std::string& golden, const AtbTraits& traits,
              const MeasureTraits& measure, Progress* progress) {
  auto dumps = std::make_shared<AtbDumps>(read_atb(target, golden));
  Plan plan;
  plan.one_at_a_time = true;
  plan.one_sided = one_sided(*dumps);
  Task& task = plan.tasks.emplace_back();
  task.target = target;
  task.golden = golden;
  task.name = dumps->tensors() ? "atb_tensor_compare_result" : "atb_stats_compare_result";
  task.workbook = true;
  task.run = [dumps, traits, measure, progress] {
    const Mode mode = dumps->tensors() ? Mode::tensor : Mode::statistics;
    return std::make_shared<ListRows>(mode, compare_atb(*dumps, traits, measure, progress));
  };
  return plan;
}

}  // namespace msprobe::compare
