// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/name_map.hpp"

#include <fmt/format.h>
#include <unordered_map>
#include <utility>

#include "checkpoint/default_name_map.hpp"
#include "checkpoint/gguf_name_map.hpp"
#include "support/error.hpp"
#include "support/rule_file.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using Node = RuleFile::Node;

const std::map<std::string_view, ParameterJoin> kJoins = {
    {"rows", ParameterJoin::rows},
    {"query_groups", ParameterJoin::query_groups},
    {"fused_query_groups", ParameterJoin::fused_query_groups}};

NameRule to_rule(const RuleFile& file, const Node& node) {
  const Node* to = nullptr;
  const Node* from = nullptr;
  const Node* join = nullptr;
  for (const auto& [key, value] : file.members(node)) {
    const Node*& place = key->text == "to" ? to : key->text == "from" ? from : join;
    if (&place == &join && key->text != "join") file.fail(*key, "unknown key '" + display(key->text) + "'");
    if (place != nullptr) file.fail(*key, "'" + key->text + "' appears twice");
    place = value;
  }
  if (to == nullptr || !to->is_text() || from == nullptr) file.fail(node, "a rule needs 'to' and 'from'");
  NameRule rule{NamePattern(to->text), {}, ParameterJoin::none};
  if (from->is_text()) {
    rule.from.emplace_back(from->text);
  } else {
    for (const Node* item : file.elements(*from)) {
      if (!item->is_text()) file.fail(*item, "'from' must be a name or a list of names");
      rule.from.emplace_back(item->text);
    }
    if (rule.from.empty()) file.fail(*from, "'from' must be a name or a list of names");
  }
  if (join != nullptr) {
    const auto known = kJoins.find(join->text);
    if (known == kJoins.end()) file.fail(*join, "'join' must be rows, query_groups or fused_query_groups");
    rule.join = known->second;
  }
  if (rule.from.size() > 1 && rule.join == ParameterJoin::none)
    file.fail(node, "several names need a 'join'");
  if (rule.join == ParameterJoin::query_groups && rule.from.size() != 3) {
    file.fail(node, "query_groups takes queries, keys and values");
  }
  if (rule.join == ParameterJoin::fused_query_groups && rule.from.size() != 1) {
    file.fail(node, "fused_query_groups takes one name");
  }
  return rule;
}

std::int64_t group_count(const Parameter& keys, const Architecture& architecture) {
  const std::int64_t rows = keys.shape.empty() ? 0 : keys.shape[0];
  std::int64_t groups = 0;
  if (architecture.head_size && *architecture.head_size > 0 && rows % *architecture.head_size == 0) {
    groups = rows / *architecture.head_size;
  } else if (architecture.query_groups) {
    groups = *architecture.query_groups;
  } else if (architecture.heads) {
    groups = *architecture.heads;
  }
  if (groups < 1) {
    throw FormatError(display(keys.name),
                      "the size of an attention head is unknown: it is neither in the arguments of a "
                      "checkpoint nor in a config.json beside it");
  }
  return groups;
}

/// Splits a parameter that has queries, keys and values one below the other.
std::vector<Parameter> split_queries(const Parameter& fused, const Architecture& architecture) {
  const std::int64_t rows = fused.shape.empty() ? 0 : fused.shape[0];
  const std::int64_t heads = architecture.heads.value_or(0);
  const std::int64_t groups = architecture.query_groups.value_or(heads);
  constexpr std::int64_t kMostHeads = 1 << 20;
  if (heads < 1 || groups < 1 || heads > kMostHeads || groups > kMostHeads ||
      rows % (heads + 2 * groups) != 0) {
    throw FormatError(display(fused.name),
                      "the numbers of attention heads and query groups are unknown: they are neither in the "
                      "arguments of a checkpoint nor in a config.json beside it");
  }
  const std::int64_t size = rows / (heads + 2 * groups);
  return {narrow(fused, 0, 0, heads * size), narrow(fused, 0, heads * size, groups * size),
          narrow(fused, 0, (heads + groups) * size, groups * size)};
}

Parameter join_groups(const std::vector<Parameter>& projections, const Architecture& architecture) {
  const std::int64_t groups = group_count(projections[1], architecture);
  constexpr std::int64_t kMostGroups = 1 << 16;
  constexpr std::int64_t kMostSteps = std::int64_t{1} << 26;
  for (const Parameter& projection : projections) {
    if (projection.shape.empty() || groups > kMostGroups || projection.shape[0] % groups != 0 ||
        groups > kMostSteps / static_cast<std::int64_t>(projection.blocks.size() + 1)) {
      throw FormatError(display(projection.name), fmt::format("{} cannot be divided into {} query groups",
                                                              shape_text(projection.shape), groups));
    }
  }
  std::vector<Parameter> parts;
  for (std::int64_t group = 0; group < groups; ++group) {
    for (const Parameter& projection : projections) {
      const std::int64_t rows = projection.shape[0] / groups;
      parts.push_back(narrow(projection, 0, group * rows, rows));
    }
  }
  return concatenate(parts, 0);
}

}  // namespace

NamePattern::NamePattern(std::string_view text) {
  for (const std::string_view part : split(text, ".")) {
    const bool is_word = part.size() > 2 && part.front() == '{' && part.back() == '}';
    parts_.push_back({is_word, std::string(is_word ? part.substr(1, part.size() - 2) : part)});
  }
}

std::optional<NamePattern::Words> NamePattern::match(std::string_view name) const {
  const std::vector<std::string_view> given = split(name, ".");
  if (given.size() != parts_.size()) return {};
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!parts_[i].is_word && parts_[i].text != given[i]) return {};
  }
  Words words;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!parts_[i].is_word) continue;
    const auto [at, is_new] = words.try_emplace(parts_[i].text, given[i]);
    if (!is_new && at->second != given[i]) return {};
  }
  return words;
}

std::string NamePattern::fill(const Words& words) const {
  std::string name;
  for (const NameComponent& part : parts_) {
    if (!name.empty()) name += '.';
    const auto word = part.is_word ? words.find(part.text) : words.end();
    name += word == words.end() ? part.text : word->second;
  }
  return name;
}

NameMap NameMap::built_in() {
  return parse(RuleFile("built-in name map", kDefaultNameMap));
}

NameMap NameMap::of_gguf() {
  return parse(RuleFile("built-in map of GGUF names", kGgufNameMap));
}

NameMap NameMap::from_file(const std::string& path) {
  return parse(RuleFile::open(path));
}

NameMap NameMap::parse(const RuleFile& file) {
  NameMap map;
  if (file.root().kind != RuleFile::Kind::list) file.fail(file.root(), "a name map must be a list of rules");
  for (const Node* node : file.elements(file.root())) map.rules_.push_back(to_rule(file, *node));
  return map;
}

std::vector<NameMap::Made> NameMap::apply(const std::vector<std::string>& names) const {
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < names.size(); ++i) index.emplace(names[i], i);
  std::vector<bool> used(names.size());
  std::vector<Made> made;
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const NameRule& rule : rules_) {
      const auto words = rule.from[0].match(names[i]);
      if (!words || used[i]) continue;
      Made one{rule.to.fill(*words), {i}, rule.join};
      for (std::size_t k = 1; k < rule.from.size(); ++k) {
        const auto found = index.find(rule.from[k].fill(*words));
        if (found != index.end() && !used[found->second]) one.from.push_back(found->second);
      }
      if (one.from.size() != rule.from.size()) continue;
      for (const std::size_t from : one.from) used[from] = true;
      made.push_back(std::move(one));
      break;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!used[i]) made.push_back({names[i], {i}, ParameterJoin::none});
  }
  return made;
}

CheckpointEntry join_entries(const std::string& name, const std::vector<const CheckpointEntry*>& from,
                             ParameterJoin join, const Architecture& architecture) {
  if (from.size() == 1) {
    CheckpointEntry entry = *from[0];
    const bool fused = join == ParameterJoin::fused_query_groups && entry.problem.empty();
    try {
      if (fused) {
        const std::vector<Replica> copies = std::exchange(entry.replicas, {});
        entry.parameter = join_groups(split_queries(entry.parameter, architecture), architecture);
        for (const Replica& copy : copies) {
          entry.replicas.push_back(
              {copy.parameter, copy.where, copy.original ? *copy.original : from[0]->parameter});
        }
      }
    } catch (const FormatError& error) {
      entry.problem = error.what();
    }
    entry.parameter.name = name;
    return entry;
  }
  CheckpointEntry entry;
  entry.parameter.name = name;
  std::vector<Parameter> parts;
  for (const CheckpointEntry* part : from) {
    if (!part->problem.empty()) entry.problem = part->problem;
    parts.push_back(part->parameter);
  }
  if (!entry.problem.empty()) return entry;
  try {
    entry.parameter =
        join == ParameterJoin::query_groups ? join_groups(parts, architecture) : concatenate(parts, 0);
  } catch (const FormatError& error) {
    entry.problem = error.what();
  }
  entry.parameter.name = name;
  // Copies of the parts stay copies of the parts.
  for (const CheckpointEntry* part : from) {
    for (const Replica& replica : part->replicas) {
      entry.replicas.push_back(
          {replica.parameter, replica.where, replica.original ? *replica.original : part->parameter});
    }
  }
  return entry;
}

}  // namespace msprobe::checkpoint
