// SPDX-License-Identifier: Apache-2.0
#include "anomaly/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "anomaly/badness.hpp"
#include "dump/dump_json.hpp"
#include "dump/nonfinite.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;
using dump::NodeKind;
using dump::NormJump;

constexpr auto kNoNode = Entry::kNone;

/// The sections of an entry that the levels use.
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

/// Overflow levels search lists, but not objects.
bool bad_in_lists(const Entry& entry, Entry::Index node) {
  if (!entry.is(node, NodeKind::array)) return dump::shows_bad(entry, node, false);
  bool bad = false;
  entry.children(node, [&](Entry::Index item) { bad = bad || bad_in_lists(entry, item); });
  return bad;
}

bool any_bad(const Entry& entry, Entry::Index section) {
  bool bad = false;
  items(entry, section, [&](std::size_t, Entry::Index item) { bad = bad || bad_in_lists(entry, item); });
  return bad;
}

NormJump norms_of(const Entry& entry) {
  const Sections sections = sections_of(entry);
  NormJump jump(entry, false);
  for (const Entry::Index section : {sections.arguments, sections.keywords})
    items(entry, section, [&](std::size_t, Entry::Index item) { jump.input(item); });
  items(entry, sections.output, [&](std::size_t, Entry::Index item) { jump.output(item); });
  return jump;
}

/// The first two parts of the name, in lower case.
std::string rule_key(std::string_view name) {
  const std::size_t first = name.find('.');
  const std::size_t second = first == std::string_view::npos ? first : name.find('.', first + 1);
  return lower_case(name.substr(0, second));
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

/// Does the node or a node below it have a Max or Min with a value?
bool has_statistics(const Entry& entry, Entry::Index node) {
  if (!entry.is_container(node)) return false;
  bool found = false;
  if (entry.is(node, NodeKind::object)) {
    for (const Entry::Index value : entry.find_all<2>(node, {"Max", "Min"}))
      found = found || entry.is_number(value) || entry.is(value, NodeKind::boolean) ||
              (entry.is(value, NodeKind::string) &&
               (dump::bad_statistic(entry, value) != 0 || parse_number(entry.string(value))));
  }
  entry.children(node, [&](Entry::Index child) { found = found || has_statistics(entry, child); });
  return found;
}

/// Does the node or a node below it have a tensor with elements?
bool has_elements(const Entry& entry, Entry::Index node) {
  if (!entry.is_container(node)) return false;
  if (entry.is(node, NodeKind::object)) {
    const auto described = entry.find_all<6>(node, {"dtype", "Max", "Min", "Mean", "Norm", "md5"});
    // An argument may also have the name dtype.
    if (std::ranges::any_of(described, [&](Entry::Index member) {
          return member != kNoNode && !entry.is(member, NodeKind::object);
        })) {
      const Entry::Index shape = entry.find(node, "shape");
      bool empty = false;
      if (entry.is(shape, NodeKind::array)) {
        entry.children(shape, [&](Entry::Index size) {
          empty = empty || (entry.is_number(size) && entry.number(size) == 0);
        });
      }
      return !empty;
    }
  }
  bool found = false;
  entry.children(node, [&](Entry::Index child) { found = found || has_elements(entry, child); });
  return found;
}

/// Finds problems that the statistics of one entry's tensors show.
class StatisticsFinder {
 public:
  StatisticsFinder(std::string_view name, const Entry& entry, const AnomalyRules& rules)
      : name_(name), entry_(entry), rules_(rules), norms_(norms_of(entry)) {}

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
    if (const auto jump = norms_.above(rules_.norm_jump_above)) {
      add("norm_jump", "", AnomalyLevel::high,
          fmt::format("largest norm {} in, {}{} out", python_repr(jump->input), python_repr(jump->output),
                      jump->or_more ? " or more" : ""));
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
    // If an input has the largest finite number, an output may have it without an overflow.
    if (const auto text = saturated(item); text && !saturated_input && !norms_.is_given(item))
      add("saturated", where, AnomalyLevel::high, *text);
    if (dump::bad_item(entry_, item) != 0) return;
    for (const std::string_view key : {"Mean", "Norm"}) {
      if (!dump::bad_sum(entry_, item, key)) continue;
      add(key == "Mean" ? "bad_mean" : "bad_norm", where, AnomalyLevel::medium,
          fmt::format("{} is {}, maximum and minimum are finite", key,
                      entry_.python_str(entry_.find(item, key))));
    }
  }

  /// Describes the statistic that reaches the limit of the dtype.
  std::optional<std::string> saturated(Entry::Index item) const {
    std::string type = lower_case(entry_.string(item, "dtype"));
    if (type.starts_with("torch.")) type.erase(0, 6);
    const auto limit = rules_.largest_finite.find(type);
    if (limit == rules_.largest_finite.end()) return std::nullopt;
    for (const std::string_view key : {"Max", "Min"}) {
      const auto value = dump::number_of(entry_, entry_.find(item, key));
      if (!value || std::fabs(*value) != limit->second) continue;
      return fmt::format("{} {} is the {} {}", key, python_repr(*value), *value < 0 ? "lowest" : "largest",
                         type);
    }
    return std::nullopt;
  }

  void add(std::string what, std::string where, AnomalyLevel level, std::string text) {
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
  const AnomalyRules& rules_;
  NormJump norms_;
  std::vector<EntryFinding> found_;
};

}  // namespace

std::string_view level_name(AnomalyLevel level) {
  constexpr std::string_view kNames[] = {"none", "medium", "high", "critical"};
  return kNames[static_cast<std::size_t>(level)];
}

std::string_view scene_name(Scene scene) {
  constexpr std::string_view kNames[] = {"", "InputNormalOutputAnomalyScene",
                                         "InputAnomalyOutputAnomalyScene", "InputAnomalyOutputNormalScene",
                                         "NumericalMutationScene"};
  return kNames[static_cast<std::size_t>(scene)];
}

Scene find_scene(const Entry& entry, const AnomalyRules& rules) {
  const Sections sections = sections_of(entry);
  const bool input = any_bad(entry, sections.arguments) || any_bad(entry, sections.keywords);
  const bool output = any_bad(entry, sections.output);
  if (output) return input ? Scene::input_bad_output_bad : Scene::input_normal_output_bad;
  if (input) return Scene::input_bad_output_normal;
  return norms_of(entry).above(rules.norm_jump_above) ? Scene::norm_jump : Scene::none;
}

AnomalyLevel level_of(Scene scene) {
  switch (scene) {
    case Scene::none:
      return AnomalyLevel::none;
    case Scene::input_normal_output_bad:
      return AnomalyLevel::critical;
    case Scene::input_bad_output_normal:
      return AnomalyLevel::medium;
    case Scene::input_bad_output_bad:
    case Scene::norm_jump:
      break;
  }
  return AnomalyLevel::high;
}

bool is_expected_bad(std::string_view name, const Entry& entry, const AnomalyRules& rules) {
  const auto found = rules.expected_bad.find(rule_key(name));
  if (found == rules.expected_bad.end()) return false;
  const ExpectedBad& rule = found->second;
  const Sections sections = sections_of(entry);
  bool expected = true;
  const auto only_in = [&](const auto& places, Entry::Index section, const auto& place_of) {
    if (places.empty()) return;
    items(entry, section, [&](std::size_t position, Entry::Index item) {
      if (dump::shows_bad(entry, item, false) && !places.contains(place_of(position, item))) expected = false;
    });
  };
  const auto position_of = [](std::size_t position, Entry::Index) { return position; };
  only_in(rule.inputs.positions, sections.arguments, position_of);
  only_in(rule.inputs.names, sections.keywords,
          [&](std::size_t, Entry::Index item) { return entry.key(item); });
  only_in(rule.outputs, sections.output, position_of);
  return expected;
}

std::vector<EntryFinding> find_statistics(std::string_view name, const Entry& entry,
                                          const AnomalyRules& rules) {
  return StatisticsFinder(name, entry, rules).run();
}

void cover_entry(const Entry& entry, std::string_view name, Coverage& coverage) {
  const Sections sections = sections_of(entry);
  using Test = bool (*)(const Entry&, Entry::Index);
  const auto in = [&](Entry::Index section, Test has) { return section != kNoNode && has(entry, section); };
  const auto in_inputs = [&](Test has) { return in(sections.arguments, has) || in(sections.keywords, has); };
  const bool inputs = in_inputs(has_statistics);
  const bool outputs = in(sections.output, has_statistics);
  if ((!inputs && in_inputs(has_elements)) || (!outputs && in(sections.output, has_elements))) {
    coverage.miss("no Max or Min of its inputs, or of its outputs, is a number", name);
  } else {
    ++(inputs || outputs ? coverage.compared : coverage.explained);
  }
}

EntryFindings list_entries(const ByteSource& file, AnomalyListing listing, const AnomalyRules& rules) {
  EntryFindings result;
  const dump::Header header = dump::read_dump_json(file, [&](std::string_view name, const Entry& entry) {
    ++result.entries;
    if (!entry.is(0, NodeKind::object)) return;
    // This listing judges only finite numbers.
    const Entry::Index output = sections_of(entry).output;
    if (listing == AnomalyListing::statistics && output != kNoNode &&
        (bad_anywhere(entry, output) & dump::kNan) != 0) {
      result.coverage.miss("it gives NaN, which --statistics does not judge", name);
    } else {
      cover_entry(entry, name, result.coverage);
    }
    if (listing == AnomalyListing::statistics) {
      for (EntryFinding& finding : find_statistics(name, entry, rules))
        result.found.push_back(std::move(finding));
      return;
    }
    const Scene scene = find_scene(entry, rules);
    if (scene == Scene::none || is_expected_bad(name, entry, rules)) return;
    result.found.push_back(level_finding(name, entry, scene));
  });
  result.task = header.task;
  return result;
}

}  // namespace msprobe::anomaly
