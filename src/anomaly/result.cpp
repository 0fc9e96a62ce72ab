// SPDX-License-Identifier: Apache-2.0
#include "anomaly/result.hpp"

#include <utility>

#include "dump/entry.hpp"
#include "dump/names.hpp"
#include "support/json_writer.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;

constexpr JsonStyle kDocument = {.indent = 2};
constexpr JsonStyle kLine = {};

/// The sections of the entry that the result shows, each with the text for a missing one.
std::vector<std::pair<std::string_view, std::string_view>> sections(std::string_view name) {
  const auto parsed = dump::parse_entry_name(name);
  const bool backward_by_word = name.find("forward") == std::string_view::npos;
  const bool backward = parsed ? parsed->direction == dump::Direction::backward : backward_by_word;
  if (backward) return {{"input", "[]"}, {"output", "{}"}};
  return {{"input_args", "[]"}, {"input_kwargs", "{}"}, {"output", "{}"}};
}

void root_members(JsonWriter& json, const Analysis& analysis, std::size_t index) {
  const AnomalyRoot& root = analysis.roots[index];
  const RootDetails& details = analysis.details[index];
  json.member("op_name", root.entry.name);
  json.open_object("data_info");
  for (const auto& [section, absent] : sections(root.entry.name)) {
    json.key(section);
    const Entry::Index node = details.entry.find(0, section);
    if (node == Entry::kNone) {
      json.raw(absent);
    } else {
      dump::append_json(json, details.entry, node);
    }
  }
  json.close();
  json.member("construct_info", details.construct);
  json.key("stack_info");
  dump::append_json(json, details.stack, details.stack_node);
  if (!analysis.with_path) return;
  json.member("kind", kind_name(root.kind));
  json.open_list("spread");
  for (const Reached& reached : root.path) {
    json.open_object();
    json.member("rank", analysis.ranks[reached.rank].number);
    json.member("op_name", reached.entry.name);
    json.member("from_rank", analysis.ranks[reached.from].number);
    json.close();
  }
  json.close();
}

void finding_members(JsonWriter& json, const EntryFinding& finding, AnomalyListing listing) {
  json.member("op_name", finding.name);
  if (listing == AnomalyListing::statistics) {
    json.member("finding", finding.what);
    json.member("place", finding.where);
    json.member("text", finding.text);
    return;
  }
  json.member("overflow_level", level_name(finding.level));
  json.member("scene_type", scene_name(finding.scene));
  json.member("input_args_anomaly_indices", finding.bad_arguments);
  json.member("input_kwargs_anomaly_keys", finding.bad_keywords);
  json.member("output_anomaly_indices", finding.bad_outputs);
}

/// Groups by rank: `visit(rank, indices)` in the order in which the ranks appear.
std::vector<std::pair<std::size_t, std::vector<std::size_t>>> by_rank(const Analysis& analysis) {
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> groups;
  std::vector<std::size_t> group_of(analysis.ranks.size(), SIZE_MAX);
  for (std::size_t i = 0; i < analysis.roots.size(); ++i) {
    std::size_t& group = group_of[analysis.roots[i].rank];
    if (group == SIZE_MAX) {
      group = groups.size();
      groups.emplace_back(analysis.roots[i].rank, std::vector<std::size_t>());
    }
    groups[group].second.push_back(i);
  }
  return groups;
}

std::string rank_key(const Analysis& analysis, std::size_t rank) {
  return "rank_" + std::to_string(analysis.ranks[rank].number);
}

void line_head(JsonWriter& json, const Analysis& analysis, std::size_t rank) {
  json.open_object();
  if (!analysis.step.empty()) {
    json.member("step", analysis.step);
  }
  json.member("rank", analysis.ranks[rank].number);
}

}  // namespace

std::string_view kind_name(RootKind kind) {
  constexpr std::string_view kNames[] = {"produced", "communication", "external", "inf_to_nan", "raised"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string roots_json(const Analysis& analysis) {
  JsonWriter json(kDocument);
  json.open_object();
  for (const auto& [rank, roots] : by_rank(analysis)) {
    json.open_list(rank_key(analysis, rank));
    for (const std::size_t index : roots) {
      json.open_object();
      root_members(json, analysis, index);
      json.close();
    }
    json.close();
  }
  json.close();
  return json.take();
}

std::string roots_jsonl(const Analysis& analysis) {
  std::string text;
  for (std::size_t i = 0; i < analysis.roots.size(); ++i) {
    JsonWriter json(kLine);
    line_head(json, analysis, analysis.roots[i].rank);
    root_members(json, analysis, i);
    json.close();
    text += json.take() + "\n";
  }
  return text;
}

std::string findings_json(const Analysis& analysis, AnomalyListing listing) {
  JsonWriter json(kDocument);
  json.open_object();
  for (std::size_t r = 0; r < analysis.findings.size(); ++r) {
    json.open_list(rank_key(analysis, r));
    for (const EntryFinding& finding : analysis.findings[r].found) {
      json.open_object();
      finding_members(json, finding, listing);
      json.close();
    }
    json.close();
  }
  json.close();
  return json.take();
}

std::string findings_jsonl(const Analysis& analysis, AnomalyListing listing) {
  std::string text;
  for (std::size_t r = 0; r < analysis.findings.size(); ++r) {
    for (const EntryFinding& finding : analysis.findings[r].found) {
      JsonWriter json(kLine);
      line_head(json, analysis, r);
      finding_members(json, finding, listing);
      json.close();
      text += json.take() + "\n";
    }
  }
  return text;
}

}  // namespace msprobe::anomaly
