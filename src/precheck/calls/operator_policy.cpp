// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/operator_policy.hpp"

#include <iterator>
#include <string_view>

#include "dump/operation_names.hpp"
#include "dump/operations.hpp"
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
    OperatorPolicy::Names* into = key->text == "types"               ? &result.types
                                  : key->text == "mindspore_types"   ? &result.mindspore_types
                                  : key->text == "probability_names" ? &result.probability_names
                                                                     : nullptr;
    if (into == nullptr) file.fail(*key, "an unknown list");
    *into = names_of(file, *value);
  }
  return result;
}

}  // namespace

const OperatorPolicy& operator_policy() {
  static const OperatorPolicy policy = read_policy();
  return policy;
}

bool is_always_random(const ApiName& api) {
  const dump::KnownOperation* const operation = dump::find_operation(api.name);
  return operation != nullptr && operation->kind == dump::OperationKind::random && !probability_position(api);
}

std::optional<std::size_t> probability_position(const ApiName& api) {
  const dump::KnownOperation* const operation = dump::find_operation(api.name);
  if (operation == nullptr) return std::nullopt;
  const bool may_be_random =
      operation->kind == dump::OperationKind::random || operation->kind == dump::OperationKind::attention;
  if (!may_be_random) return std::nullopt;
  for (const std::string& name : operator_policy().probability_names) {
    const auto position = dump::position_of(dump::arguments_like(*operation, api.type), name);
    if (position) return position;
  }
  return std::nullopt;
}

const OperatorPolicy::Names& listable_names() {
  static const OperatorPolicy::Names names(std::begin(dump::kListableNames), std::end(dump::kListableNames));
  return names;
}

}  // namespace msprobe::precheck
