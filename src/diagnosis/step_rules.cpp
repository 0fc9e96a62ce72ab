// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

#include "diagnosis/step_rule.hpp"
#include "dump/names.hpp"

namespace msprobe::diagnosis {

const std::vector<std::unique_ptr<StepRule>>& step_rules() {
  static const std::vector<std::unique_ptr<StepRule>> kRules = [] {
    std::vector<std::unique_ptr<StepRule>> rules;
    rules.push_back(gradients_not_zeroed());
    return rules;
  }();
  return kRules;
}

std::uint64_t gradient_key(std::string_view module, std::string_view item_name) {
  return std::hash<std::string>{}(fmt::format("{}.{}", module, dump::split_last(item_name).second));
}

}  // namespace msprobe::diagnosis
