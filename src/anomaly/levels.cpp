// SPDX-License-Identifier: Apache-2.0
#include "anomaly/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "anomaly/badness.hpp"
#include "dump/dump_json.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr auto kNoNode = Entry::kNone;

/// The sections that levels look at.
struct Sections {
  Entry::Index arguments = kNoNode;
  Entry::Index keywords = kNoNode;
  Entry::Index output = kNoNode;
};

Sections sections_of(const Entry& entry) {
  Sections sections;
  sections.arguments = entry.find(0, "input_args");
  if (sections.arguments == kNoNode) sections.arguments = entry.find(0, "input");
  sections.keywords = entry.find(0, "input_kwargs");
  sections.output = entry.find(0, "output");
  return sections;
}

template <typename Visit>
void items(const Entry& entry, Entry::Index section, Visit&& visit) {
  if (section == kNoNode) return;
  if (!entry.is(section, NodeKind::array) && !entry.is(section, NodeKind::object)) return;
  std::size_t position = 0;
  entry.children(section, [&](Entry::Index item) { visit(position++, item); });
}

bool bad_object(const Entry& entry, Entry::Index node) {
  if (!entry.is(node, NodeKind::object)) return false;
  for (const std::string_view key : {"Max", "Min", "Mean"}) {
    const Entry::Index value = entry.find(node, key);
    if (value != kNoNode && bad_statistic(entry, value, false) != 0) return true;
  }
  return false;
}

/// Levels look into lists, not into objects.
bool bad_in_lists(const Entry& entry, Entry::Index node) {
  if (!entry.is(node, NodeKind::array)) return bad_object(entry, node);
  bool bad = false;
  entry.children(node, [&](Entry::Index item) { bad = bad || bad_in_lists(entry, item); });
  return bad;
}

bool any_bad(const Entry& entry, Entry::Index section) {
  bool bad = false;
  items(entry, section, [&](std::size_t, Entry::Index item) { bad = bad || bad_in_lists(entry, item); });
  return bad;
}

bool is_tensor(const Entry& entry, Entry::Index node) {
  const Entry::Index type = entry.find(node, "type");
  return type != kNoNode && (entry.text(type) == "torch.Tensor" || entry.text(type) == "mindspore.Tensor");
}

/// A number as Python's json loads it; nothing for null, text and NaN.
std::optional<double> finite_or_infinite(const Entry& entry, Entry::Index node) {
  if (node == kNoNode || (!entry.is(node, NodeKind::integer) && !entry.is(node, NodeKind::real)))
    return std::nullopt;
  const double value = entry.number(node);
  if (std::isnan(value)) return std::nullopt;
  return value;
}

void largest_norm(const Entry& entry, Entry::Index section, std::optional<double>& largest) {
  items(entry, section, [&](std::size_t, Entry::Index item) {
    if (!is_tensor(entry, item)) return;
    const auto norm = finite_or_infinite(entry, entry.find(item, "Norm"));
    if (norm) largest = std::max(largest.value_or(*norm), *norm);
  });
}

struct NormJump {
  double input = 0;
  double output = 0;
};

std::optional<NormJump> find_norm_jump(const Entry& entry, const Rules& rules) {
  const Sections sections = sections_of(entry);
  std::optional<double> input;
  std::optional<double> output;
  largest_norm(entry, sections.arguments, input);
  largest_norm(entry, sections.keywords, input);
  largest_norm(entry, sections.output, output);
  if (!input || !output) return std::nullopt;
  const double ratio = *input == 0 ? *output : *output / *input;
  if (!(ratio > rules.norm_jump_above)) return std::nullopt;
  return NormJump{*input, *output};
}

/// The first two parts of the name in lower case.
std::string rule_key(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t second = first == std::string_view::npos ? first : name.find('.', first + 1);
  std::string key(name.substr(0, second));
  for (char& c : key) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return key;
}

EntryFinding level_finding(std::string_view name, const Entry& entry, Scene scene) {
  EntryFinding finding;
  finding.name = name;
  finding.scene = scene;
  finding.level = level_of(scene);
  const Sections sections = sections_of(entry);
  items(entry, sections.arguments, [&](std::size_t position, Entry::Index item) {
    if (bad_in_lists(entry, item)) finding.bad_arguments.push_back(position);
  });
  items(entry, sections.keywords, [&](std::size_t, Entry::Index item) {
    if (bad_in_lists(entry, item)) finding.bad_keywords.emplace_back(entry.key(item));
  });
  items(entry, sections.output, [&](std::size_t position, Entry::Index item) {
    if (bad_in_lists(entry, item)) finding.bad_outputs.push_back(position);
  });
  return finding;
}

/// Finds what statistics show in the tensors of one entry.
class StatisticsFinder {
 public:
  StatisticsFinder(std::string_view name, const Entry& entry, const Rules& rules)
      : name_(name), entry_(entry), rules_(rules) {}

  std::vector<EntryFinding> run() {
    const Sections sections = sections_of(entry_);
    bool saturated_input = false;
    for (const Entry::Index section : {sections.arguments, sections.keywords}) {
      items(entry_, section, [&](std::size_t, Entry::Index item) {
        saturated_input = saturated_input || saturated(item).has_value();
      });
    }
    items(entry_, sections.output, [&](std::size_t position, Entry::Index item) {
      visit(item, "output." + std::to_string(position), saturated_input);
    });
    if (const auto jump = find_norm_jump(entry_, rules_)) {
      add("norm_jump", "", Level::high,
          fmt::format("largest norm {} in, {} out", python_repr(jump->input), python_repr(jump->output)));
    }
    return std::move(found_);
  }

 private:
  void visit(Entry::Index item, const std::string& where, bool saturated_input) {
    if (entry_.is(item, NodeKind::array)) {
      items(entry_, item, [&](std::size_t position, Entry::Index child) {
        visit(child, where + "." + std::to_string(position), saturated_input);
      });
      return;
    }
    if (!entry_.is(item, NodeKind::object)) return;
    // What came in at the limit may well go out at it.
    if (const auto text = saturated(item); text && !saturated_input)
      add("saturated", where, Level::high, *text);
    if (bad_item(entry_, item) != 0) return;
    for (const std::string_view key : {"Mean", "Norm"}) {
      const Entry::Index value = entry_.find(item, key);
      if (value == kNoNode || bad_statistic(entry_, value) == 0) continue;
      add(key == "Mean" ? "bad_mean" : "bad_norm", where, Level::medium,
          fmt::format("{} is {}, maximum and minimum are finite", key, entry_.python_str(value)));
    }
  }

  /// Which statistic reaches the limit of the dtype.
  std::optional<std::string> saturated(Entry::Index item) const {
    const Entry::Index dtype = entry_.find(item, "dtype");
    if (dtype == kNoNode || !entry_.is(dtype, NodeKind::string)) return std::nullopt;
    std::string type(entry_.text(dtype));
    for (char& c : type) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    }
    if (type.starts_with("torch.")) type.erase(0, 6);
    const auto limit = rules_.largest_finite.find(type);
    if (limit == rules_.largest_finite.end()) return std::nullopt;
    for (const std::string_view key : {"Max", "Min"}) {
      const auto value = finite_or_infinite(entry_, entry_.find(item, key));
      if (!value || std::fabs(*value) != limit->second) continue;
      return fmt::format("{} {} is the {} {}", key, python_repr(*value), *value < 0 ? "lowest" : "largest",
                         type);
    }
    return std::nullopt;
  }

  void add(std::string what, std::string where, Level level, std::string text) {
    EntryFinding finding;
    finding.name = name_;
    finding.level = level;
    finding.what = std::move(what);
    finding.where = std::move(where);
    finding.text = std::move(text);
    found_.push_back(std::move(finding));
  }

  std::string_view name_;
  const Entry& entry_;
  const Rules& rules_;
  std::vector<EntryFinding> found_;
};

}  // namespace

std::string_view level_name(Level level) {
  constexpr std::string_view kNames[] = {"none", "medium", "high", "critical"};
  return kNames[static_cast<std::size_t>(level)];
}

std::string_view scene_name(Scene scene) {
  constexpr std::string_view kNames[] = {"", "InputNormalOutputAnomalyScene",
                                         "InputAnomalyOutputAnomalyScene", "InputAnomalyOutputNormalScene",
                                         "NumericalMutationScene"};
  return kNames[static_cast<std::size_t>(scene)];
}

Scene find_scene(const Entry& entry, const Rules& rules) {
  const Sections sections = sections_of(entry);
  const bool input = any_bad(entry, sections.arguments) || any_bad(entry, sections.keywords);
  const bool output = any_bad(entry, sections.output);
  if (output) return input ? Scene::input_bad_output_bad : Scene::input_normal_output_bad;
  if (input) return Scene::input_bad_output_normal;
  return find_norm_jump(entry, rules) ? Scene::norm_jump : Scene::none;
}

Level level_of(Scene scene) {
  switch (scene) {
    case Scene::none:
      return Level::none;
    case Scene::input_normal_output_bad:
      return Level::critical;
    case Scene::input_bad_output_normal:
      return Level::medium;
    case Scene::input_bad_output_bad:
    case Scene::norm_jump:
      break;
  }
  return Level::high;
}

bool is_expected_bad(std::string_view name, const Entry& entry, const Rules& rules) {
  const auto found = rules.expected_bad.find(rule_key(name));
  if (found == rules.expected_bad.end()) return false;
  const ExpectedBad& rule = found->second;
  const Sections sections = sections_of(entry);
  bool expected = true;
  if (!rule.inputs.positions.empty()) {
    items(entry, sections.arguments, [&](std::size_t position, Entry::Index item) {
      if (bad_object(entry, item) && !rule.inputs.positions.contains(position)) expected = false;
    });
  }
  if (!rule.inputs.names.empty()) {
    items(entry, sections.keywords, [&](std::size_t, Entry::Index item) {
      if (bad_object(entry, item) && !rule.inputs.names.contains(entry.key(item))) expected = false;
    });
  }
  if (!rule.outputs.empty()) {
    items(entry, sections.output, [&](std::size_t position, Entry::Index item) {
      if (bad_object(entry, item) && !rule.outputs.contains(position)) expected = false;
    });
  }
  return expected;
}

std::vector<EntryFinding> find_statistics(std::string_view name, const Entry& entry, const Rules& rules) {
  return StatisticsFinder(name, entry, rules).run();
}

RankFindings list_entries(const ByteSource& file, Listing listing, const Rules& rules) {
  RankFindings result;
  dump::read_dump_json(file, [&](std::string_view name, const Entry& entry) {
    ++result.entries;
    if (!entry.is(0, NodeKind::object)) return;
    if (listing == Listing::statistics) {
      for (EntryFinding& finding : find_statistics(name, entry, rules))
        result.found.push_back(std::move(finding));
      return;
    }
    const Scene scene = find_scene(entry, rules);
    if (scene == Scene::none || is_expected_bad(name, entry, rules)) return;
    result.found.push_back(level_finding(name, entry, scene));
  });
  return result;
}

}  // namespace msprobe::anomaly
