// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/operator_policy.hpp"

#include <iterator>
#include <string_view>

#include "dump/operation_names.hpp"
#include "precheck/calls/call_rules.hpp"
#include "support/rule_file.hpp"

namespace msprobe::precheck {
namespace {

OperatorPolicy::Names names_of(const RuleFile& file, const RuleFile::Node& list) {
  OperatorPolicy::Names names;
  for (const RuleFile::Node* element : file.elements(list)) names.insert(element->text);
  return names;
}

OperatorPolicy read_policy() {
  const RuleFile file("calls.yaml", kCallRules);
  OperatorPolicy result;
  for (const auto& [key, value] : file.members(file.root())) {
    const std::string_view name = key->text;
    if (name == "random_by_probability") {
      for (const auto& [api, place] : file.members(*value))
        result.random_by_probability[api->text] = static_cast<std::size_t>(std::stoul(place->text));
    } else if (name == "probability_names") {
      for (const RuleFile::Node* element : file.elements(*value))
        result.probability_names.push_back(element->text);
    } else {
      OperatorPolicy::Names* into = name == "never_called"           ? &result.never_called
                                    : name == "mindspore_called"     ? &result.mindspore_called
                                    : name == "types"                ? &result.types
                                    : name == "mindspore_types"      ? &result.mindspore_types
                                    : name == "first_output_alone"   ? &result.first_output_alone
                                    : name == "rounded_to_hf32"      ? &result.rounded_to_hf32
                                    : name == "reference_not_raised" ? &result.reference_not_raised
                                    : name == "random"               ? &result.random
                                    : name == "uninitialized"        ? &result.uninitialized
                                                                     : nullptr;
      if (into == nullptr) file.fail(*key, "an unknown list");
      *into = names_of(file, *value);
    }
  }
  return result;
}

}  // namespace

const OperatorPolicy& operator_policy() {
  static const OperatorPolicy policy = read_policy();
  return policy;
}

const OperatorPolicy::Names& listable_names() {
  static const OperatorPolicy::Names names(std::begin(dump::kListableNames), std::end(dump::kListableNames));
  return names;
}

}  // namespace msprobe::precheck
