// SPDX-License-Identifier: Apache-2.0
#include "pairing/rules.hpp"

#include <cmath>
#include <functional>
#include <map>

#include "dump/operations.hpp"
#include "pairing/default_rules.hpp"
#include "support/ascii.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::pairing {
namespace {

using RuleKind = RuleFile::Kind;
using NameSet = std::set<std::string, std::less<>>;
using Node = RuleFile::Node;

double to_threshold(const RuleFile& file, const Node& node, const std::string& key) {
  const auto number = node.is_text() ? parse_number(node.text) : std::nullopt;
  if (!number || !std::isfinite(*number)) file.fail(node, display(key) + " must be a number");
  return *number;
}

template <typename Names>
Names to_names(const RuleFile& file, const Node& node, const std::string& key) {
  // Texts that names are searched for: an empty one would be in all of them.
  constexpr bool kParts = std::is_same_v<Names, std::vector<std::string>>;
  Names names;
  if (node.kind != RuleKind::list) file.fail(node, display(key) + " must be a list of names");
  for (const Node* item : file.elements(node)) {
    if (!item->is_text() || (kParts && item->text.empty()))
      file.fail(*item, display(key) + " must be a list of names");
    names.insert(names.end(), item->text);
  }
  return names;
}

std::vector<NameSet> to_name_lists(const RuleFile& file, const Node& node, const std::string& key) {
  if (node.kind != RuleKind::list) file.fail(node, key + " must be a list of lists");
  std::vector<NameSet> lists;
  for (const Node* names : file.elements(node)) lists.push_back(to_names<NameSet>(file, *names, key));
  return lists;
}

/// Thresholds by metric; those that are not named stay.
void set_differs_above(Rules& rules, const RuleFile& file, const Node& node) {
  static const NameSet kMetricNames = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                       "NormRelativeErr"};
  if (node.kind != RuleKind::map) file.fail(node, "differs_above must name metrics and numbers");
  for (const auto& [metric, value] : file.members(node)) {
    if (!kMetricNames.contains(metric->text))
      file.fail(*metric, "differs_above: unknown metric '" + display(metric->text) + "'");
    rules.differs_above[metric->text] = to_threshold(file, *value, metric->text);
  }
}

/// Outputs by their numbers, for each operation.
void set_ignored_outputs(Rules& rules, const RuleFile& file, const Node& node) {
  if (node.kind != RuleKind::map)
    file.fail(node, "ignored_outputs must name operations and lists of numbers");
  rules.ignored_outputs.clear();
  for (const auto& [operation, outputs] : file.members(node)) {
    if (!operation->is_text() || outputs->kind != RuleKind::list)
      file.fail(*operation, "ignored_outputs must name operations and lists of numbers");
    for (const Node* item : file.elements(*outputs)) {
      const double number = to_threshold(file, *item, operation->text);
      if (number < 0 || number > 1e6 || number != std::floor(number))
        file.fail(*item, "ignored_outputs: outputs are numbered from 0");
      rules.ignored_outputs[operation->text].insert(static_cast<std::size_t>(number));
    }
  }
}

void apply(Rules& rules, const RuleFile& file) {
  using Set = std::function<void(const Node& value, const std::string& key)>;
  const auto threshold = [&](double& place) -> Set {
    return [&](const Node& value, const std::string& key) { place = to_threshold(file, value, key); };
  };
  const auto names = [&]<typename Names>(Names& place) -> Set {
    return [&](const Node& value, const std::string& key) { place = to_names<Names>(file, value, key); };
  };
  const auto lists = [&](std::vector<NameSet>& place) -> Set {
    return [&](const Node& value, const std::string& key) { place = to_name_lists(file, value, key); };
  };
  const std::map<std::string_view, Set> setters = {
      {"ratio_input_above", threshold(rules.ratio_input_above)},
      {"ratio_output_below", threshold(rules.ratio_output_below)},
      {"norm_error_input_below", threshold(rules.norm_error_input_below)},
      {"norm_error_output_above", threshold(rules.norm_error_output_above)},
      {"norm_error_growth_above", threshold(rules.norm_error_growth_above)},
      {"norm_error_from_zero_above", threshold(rules.norm_error_from_zero_above)},
      {"cosine_input_above", threshold(rules.cosine_input_above)},
      {"cosine_drop_above", threshold(rules.cosine_drop_above)},
      {"never_judged", names(rules.never_judged)},
      {"outputs_only", names(rules.outputs_only)},
      {"names_source", names(rules.names_source)},
      {"never_first", names(rules.never_first)},
      {"communication_prefixes", names(rules.communication.prefixes)},
      {"communication_words", names(rules.communication.words)},
      {"framework_frames", names(rules.framework_frames)},
      {"dtype_groups", lists(rules.dtype_groups)},
      {"dtype_classes", lists(rules.dtype_classes)},
      {"differs_above", [&](const Node& value, const auto&) { set_differs_above(rules, file, value); }},
      {"ignored_outputs", [&](const Node& value, const auto&) { set_ignored_outputs(rules, file, value); }},
  };
  if (file.root().kind != RuleKind::map) file.fail(file.root(), "rules must be a mapping of names to values");
  for (const auto& [name, value] : file.members(file.root())) {
    const auto setter = setters.find(name->text);
    if (setter == setters.end()) file.fail(*name, "unknown rule '" + display(name->text) + "'");
    setter->second(*value, name->text);
  }
}

}  // namespace

Rules default_rules() {
  Rules rules;
  apply(rules, RuleFile("built-in rules", kDefaultRules));
  const auto fill = [](auto& names, std::string_view list) {
    for (const dump::Listed& each : dump::listed_operations(list)) names.insert(names.end(), each.name);
  };
  fill(rules.never_judged, "never_judged");
  fill(rules.outputs_only, "outputs_only");
  fill(rules.never_first, "never_first");
  fill(rules.names_source, "names_source");
  for (const dump::Listed& each : dump::listed_operations("ignored_outputs")) {
    for (const std::string_view output : each.parts)
      rules.ignored_outputs[each.name].insert(whole_number<std::size_t>(output).value());
  }
  return rules;
}

Rules load_rules(const std::string& path) {
  Rules rules = default_rules();
  apply(rules, RuleFile::open(path));
  return rules;
}

}  // namespace msprobe::pairing
