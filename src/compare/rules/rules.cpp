// SPDX-License-Identifier: Apache-2.0
#include "compare/rules/rules.hpp"

#include <cmath>
#include <map>

#include "compare/rules/default_rules.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using NameSet = std::set<std::string, std::less<>>;

/// `mark` is that of the key: a value that was left out stands on the next line for yaml-cpp.
double to_threshold(const RuleFile& file, const YAML::Mark& mark, const YAML::Node& node,
                    const std::string& key) {
  const auto number = node.IsScalar() ? parse_number(node.Scalar()) : std::nullopt;
  if (!number || !std::isfinite(*number)) file.fail(mark, display(key) + " must be a number");
  return *number;
}

NameSet to_names(const RuleFile& file, const YAML::Node& node, const std::string& key) {
  NameSet names;
  if (!node.IsSequence()) file.fail(node.Mark(), display(key) + " must be a list of names");
  for (const YAML::Node& item : node) {
    if (!item.IsScalar()) file.fail(item.Mark(), display(key) + " must be a list of names");
    names.insert(item.Scalar());
  }
  return names;
}

std::vector<NameSet> to_name_lists(const RuleFile& file, const YAML::Node& node, const std::string& key) {
  if (!node.IsSequence()) file.fail(node.Mark(), key + " must be a list of lists");
  std::vector<NameSet> lists;
  for (const YAML::Node& names : node) lists.push_back(to_names(file, names, key));
  return lists;
}

std::vector<std::string> to_list(const RuleFile& file, const YAML::Node& node, const std::string& key) {
  std::vector<std::string> list;
  if (!node.IsSequence()) file.fail(node.Mark(), display(key) + " must be a list of names");
  for (const YAML::Node& item : node) {
    if (!item.IsScalar() || item.Scalar().empty())
      file.fail(item.Mark(), display(key) + " must be a list of names");
    list.push_back(item.Scalar());
  }
  return list;
}

/// Thresholds by metric; those that are not named stay.
void set_differs_above(Rules& rules, const RuleFile& file, const YAML::Node& node) {
  static const NameSet kMetricNames = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr",
                                       "NormRelativeErr"};
  if (!node.IsMap()) file.fail(node.Mark(), "differs_above must name metrics and numbers");
  for (const auto& member : node) {
    const std::string metric = member.first.IsScalar() ? member.first.Scalar() : "";
    if (!kMetricNames.contains(metric))
      file.fail(member.first.Mark(), "differs_above: there is no metric '" + display(metric) + "'");
    rules.differs_above[metric] = to_threshold(file, member.first.Mark(), member.second, metric);
  }
}

/// Outputs by their numbers, for each operation.
void set_ignored_outputs(Rules& rules, const RuleFile& file, const YAML::Node& node) {
  if (!node.IsMap()) file.fail(node.Mark(), "ignored_outputs must name operations and lists of numbers");
  rules.ignored_outputs.clear();
  for (const auto& member : node) {
    const YAML::Mark mark = member.first.Mark();
    if (!member.first.IsScalar() || !member.second.IsSequence())
      file.fail(mark, "ignored_outputs must name operations and lists of numbers");
    for (const YAML::Node& item : member.second) {
      const double number = to_threshold(file, mark, item, member.first.Scalar());
      if (number < 0 || number > 1e6 || number != std::floor(number))
        file.fail(mark, "ignored_outputs: outputs are numbered from 0");
      rules.ignored_outputs[member.first.Scalar()].insert(static_cast<std::size_t>(number));
    }
  }
}

void apply(Rules& rules, const RuleFile& file, const YAML::Node& root) {
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
      {"communication_prefixes", &rules.communication_prefixes},
      {"communication_words", &rules.communication_words},
      {"framework_frames", &rules.framework_frames},
  };
  if (!root.IsMap()) file.fail(root.Mark(), "rules must be a mapping of names to values");
  for (const auto& member : root) {
    const std::string key = member.first.IsScalar() ? member.first.Scalar() : "";
    if (const auto threshold = thresholds.find(key); threshold != thresholds.end()) {
      *threshold->second = to_threshold(file, member.first.Mark(), member.second, key);
    } else if (key == "never_judged") {
      rules.never_judged = to_names(file, member.second, key);
    } else if (key == "outputs_only") {
      rules.outputs_only = to_names(file, member.second, key);
    } else if (key == "names_source") {
      rules.names_source = to_names(file, member.second, key);
    } else if (const auto list = lists.find(key); list != lists.end()) {
      *list->second = to_list(file, member.second, key);
    } else if (key == "differs_above") {
      set_differs_above(rules, file, member.second);
    } else if (key == "ignored_outputs") {
      set_ignored_outputs(rules, file, member.second);
    } else if (key == "dtype_groups") {
      rules.dtype_groups = to_name_lists(file, member.second, key);
    } else if (key == "dtype_classes") {
      rules.dtype_classes = to_name_lists(file, member.second, key);
    } else {
      file.fail(member.first.Mark(), "there is no rule '" + display(key) + "'");
    }
  }
}

}  // namespace

Rules default_rules() {
  Rules rules;
  const RuleFile file("built-in rules", kDefaultRules);
  file.read([&](const YAML::Node& root) { apply(rules, file, root); });
  return rules;
}

Rules load_rules(const std::string& path) {
  Rules rules = default_rules();
  const RuleFile file = RuleFile::open(path);
  file.read([&](const YAML::Node& root) { apply(rules, file, root); });
  return rules;
}

}  // namespace msprobe::compare
