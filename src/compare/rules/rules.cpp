// SPDX-License-Identifier: Apache-2.0
#include "compare/rules/rules.hpp"

#include <cmath>
#include <map>

#include "compare/rules/default_rules.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using RuleKind = RuleFile::Kind;
using NameSet = std::set<std::string, std::less<>>;
using Node = RuleFile::Node;

double to_threshold(const RuleFile& file, const Node& node, const std::string& key) {
  const auto number = node.is_text() ? parse_number(node.text) : std::nullopt;
  if (!number || !std::isfinite(*number)) file.fail(node, display(key) + " must be a number");
  return *number;
}

NameSet to_names(const RuleFile& file, const Node& node, const std::string& key) {
  NameSet names;
  if (node.kind != RuleKind::list) file.fail(node, display(key) + " must be a list of names");
  for (const Node* item : file.elements(node)) {
    if (!item->is_text()) file.fail(*item, display(key) + " must be a list of names");
    names.insert(item->text);
  }
  return names;
}

std::vector<NameSet> to_name_lists(const RuleFile& file, const Node& node, const std::string& key) {
  if (node.kind != RuleKind::list) file.fail(node, key + " must be a list of lists");
  std::vector<NameSet> lists;
  for (const Node* names : file.elements(node)) lists.push_back(to_names(file, *names, key));
  return lists;
}

std::vector<std::string> to_list(const RuleFile& file, const Node& node, const std::string& key) {
  std::vector<std::string> list;
  if (node.kind != RuleKind::list) file.fail(node, display(key) + " must be a list of names");
  for (const Node* item : file.elements(node)) {
    if (!item->is_text() || item->text.empty()) file.fail(*item, display(key) + " must be a list of names");
    list.push_back(item->text);
  }
  return list;
}

/// Thresholds by metric; those that are not named stay.
void set_differs_above(Rules& rules, const RuleFile& file, const Node& node) {
  static const NameSet kMetricNames = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                       "NormRelativeErr"};
  if (node.kind != RuleKind::map) file.fail(node, "differs_above must name metrics and numbers");
  for (const auto& [metric, value] : file.members(node)) {
    if (!kMetricNames.contains(metric->text))
      file.fail(*metric, "differs_above: there is no metric '" + display(metric->text) + "'");
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
  const std::map<std::string_view, double*> thresholds = {
      {"ratio_input_above", &rules.ratio_input_above},
      {"ratio_output_below", &rules.ratio_output_below},
      {"norm_error_input_below", &rules.norm_error_input_below},
      {"norm_error_output_above", &rules.norm_error_output_above},
      {"norm_error_growth_above", &rules.norm_error_growth_above},
      {"norm_error_from_zero_above", &rules.norm_error_from_zero_above},
      {"cosine_input_above", &rules.cosine_input_above},
      {"cosine_drop_above", &rules.cosine_drop_above},
  };
  const std::map<std::string_view, std::vector<std::string>*> lists = {
      {"never_first", &rules.never_first},
      {"communication_prefixes", &rules.communication.prefixes},
      {"communication_words", &rules.communication.words},
      {"framework_frames", &rules.framework_frames},
  };
  if (file.root().kind != RuleKind::map) file.fail(file.root(), "rules must be a mapping of names to values");
  for (const auto& [name, value] : file.members(file.root())) {
    const std::string& key = name->text;
    if (const auto threshold = thresholds.find(key); threshold != thresholds.end()) {
      *threshold->second = to_threshold(file, *value, key);
    } else if (key == "never_judged") {
      rules.never_judged = to_names(file, *value, key);
    } else if (key == "outputs_only") {
      rules.outputs_only = to_names(file, *value, key);
    } else if (key == "names_source") {
      rules.names_source = to_names(file, *value, key);
    } else if (const auto list = lists.find(key); list != lists.end()) {
      *list->second = to_list(file, *value, key);
    } else if (key == "differs_above") {
      set_differs_above(rules, file, *value);
    } else if (key == "ignored_outputs") {
      set_ignored_outputs(rules, file, *value);
    } else if (key == "dtype_groups") {
      rules.dtype_groups = to_name_lists(file, *value, key);
    } else if (key == "dtype_classes") {
      rules.dtype_classes = to_name_lists(file, *value, key);
    } else {
      file.fail(*name, "there is no rule '" + display(key) + "'");
    }
  }
}

}  // namespace

Rules default_rules() {
  Rules rules;
  apply(rules, RuleFile("built-in rules", kDefaultRules));
  return rules;
}

Rules load_rules(const std::string& path) {
  Rules rules = default_rules();
  apply(rules, RuleFile::open(path));
  return rules;
}

}  // namespace msprobe::compare
