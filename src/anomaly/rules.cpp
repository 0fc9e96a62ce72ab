// SPDX-License-Identifier: Apache-2.0
#include "anomaly/rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "anomaly/default_rules.hpp"
#include "dump/communication.hpp"
#include "dump/operations.hpp"
#include "support/ascii.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

using YamlNode = RuleFile::Node;

/// Reads the values of one file; complaints name it.
class AnomalyRuleReader {
 public:
  explicit AnomalyRuleReader(const RuleFile& file) : file_(file) {}

  [[noreturn]] void fail(const YamlNode& node, const std::string& reason) const { file_.fail(node, reason); }

  double number(const YamlNode& node, const std::string& key) const {
    const auto value = node.is_text() ? parse_number(node.text) : std::nullopt;
    if (!value || !std::isfinite(*value)) fail(node, display(key) + " must be a number");
    return *value;
  }

  std::vector<std::string> words(const YamlNode& node, const std::string& key) const {
    if (node.kind != RuleFile::Kind::list) fail(node, display(key) + " must be a list");
    std::vector<std::string> list;
    for (const YamlNode* item : file_.elements(node)) {
      if (!item->is_text() || item->text.empty()) fail(*item, display(key) + " must be a list of words");
      list.push_back(item->text);
    }
    return list;
  }

  NameSet names(const YamlNode& node, const std::string& key) const {
    const std::vector<std::string> list = words(node, key);
    return {list.begin(), list.end()};
  }

  ArgumentPlaces places(const YamlNode& node, const std::string& key) const {
    ArgumentPlaces result;
    for (const std::string& word : words(node, key)) {
      if (const auto position = whole_number<std::size_t>(word)) {
        result.positions.insert(*position);
      } else {
        result.names.insert(word);
      }
    }
    return result;
  }

  template <typename Visit>
  void members(const YamlNode& node, const std::string& key, Visit&& visit) const {
    if (node.kind != RuleFile::Kind::map) fail(node, display(key) + " must be a mapping of names to values");
    for (const auto& [name, value] : file_.members(node)) {
      if (!name->is_text()) fail(*name, display(key) + ": a name must be text");
      visit(name->text, *value, *name);
    }
  }

  ExpectedBad expected(const YamlNode& node, const std::string& key) const {
    ExpectedBad rule;
    members(node, key, [&](const std::string& column, const YamlNode& value, const YamlNode& at) {
      if (column == "inputs") {
        rule.inputs = places(value, key);
      } else if (column == "outputs") {
        rule.outputs = places(value, key).positions;
      } else {
        fail(at, display(key) + ": only inputs and outputs are allowed here");
      }
    });
    return rule;
  }

 private:
  const RuleFile& file_;
};

void apply(AnomalyRules& rules, const AnomalyRuleReader& reader, const YamlNode& root) {
  reader.members(root, "rules", [&](const std::string& key, const YamlNode& value, const YamlNode& at) {
    if (key == "communication_prefixes") {
      rules.communication.prefixes = reader.words(value, key);
    } else if (key == "communication_words") {
      rules.communication.words = reader.words(value, key);
    } else if (key == "never_blamed") {
      rules.never_blamed = reader.words(value, key);
    } else if (key == "names_source") {
      rules.names_source = reader.names(value, key);
    } else if (key == "names_destination") {
      rules.names_destination = reader.names(value, key);
    } else if (key == "framework_frames") {
      rules.framework_frames = reader.words(value, key);
    } else if (key == "norm_jump_above") {
      rules.norm_jump_above = reader.number(value, key);
    } else if (key == "write_only_inputs") {
      rules.write_only_inputs.clear();
      reader.members(value, key, [&](const std::string& name, const YamlNode& places, const YamlNode&) {
        rules.write_only_inputs[name] = reader.places(places, name);
      });
    } else if (key == "expected_bad") {
      rules.expected_bad.clear();
      reader.members(value, key, [&](const std::string& name, const YamlNode& rule, const YamlNode&) {
        rules.expected_bad[name] = reader.expected(rule, name);
      });
    } else if (key == "largest_finite") {
      rules.largest_finite.clear();
      reader.members(value, key, [&](const std::string& name, const YamlNode& number, const YamlNode&) {
        rules.largest_finite[name] = reader.number(number, name);
      });
    } else {
      reader.fail(at, "unknown rule '" + display(key) + "'");
    }
  });
}

/// Numbers are positions; an argument has its name, and its position as well.
ArgumentPlaces places_of(const dump::Listed& listed, std::span<const std::string_view> parts) {
  ArgumentPlaces result;
  for (const std::string_view part : parts) {
    if (const auto position = whole_number<std::size_t>(part)) {
      result.positions.insert(*position);
      continue;
    }
    result.names.emplace(part);
    const std::string_view signature = dump::arguments_of(*listed.operation, "Distributed");
    if (const auto position = dump::position_of(signature, part)) result.positions.insert(*position);
  }
  return result;
}

bool holds_any(std::string_view text, const std::vector<std::string>& words) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace

bool AnomalyRules::is_never_blamed(std::string_view entry) const {
  return holds_any(entry, never_blamed);
}

AnomalyRules default_rules() {
  AnomalyRules rules;
  const RuleFile file("built-in rules", kDefaultRules);
  apply(rules, AnomalyRuleReader(file), file.root());
  const auto fill = [](auto& names, std::string_view list) {
    for (const dump::Listed& each : dump::listed_operations(list)) names.insert(names.end(), each.name);
  };
  fill(rules.never_blamed, "never_blamed");
  fill(rules.names_source, "names_source");
  fill(rules.names_destination, "names_destination");
  for (const dump::Listed& each : dump::listed_operations("write_only_inputs"))
    rules.write_only_inputs[each.name] = places_of(each, each.parts);
  for (const dump::Listed& each : dump::listed_operations("expected_bad")) {
    const ArgumentPlaces places = places_of(each, std::span(each.parts).subspan(1));
    ExpectedBad& rule = rules.expected_bad[each.name];
    if (each.parts.front() == "inputs") {
      rule.inputs = places;
    } else {
      rule.outputs = places.positions;
    }
  }
  return rules;
}

AnomalyRules load_rules(const std::string& path) {
  AnomalyRules rules = default_rules();
  const RuleFile file = RuleFile::open(path);
  apply(rules, AnomalyRuleReader(file), file.root());
  return rules;
}

}  // namespace msprobe::anomaly
