// SPDX-License-Identifier: Apache-2.0
#include "anomaly/result.hpp"

#include <utility>

#include "dump/names.hpp"
#include "dump/python_json.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;

/// Writes objects and lists with Python's line breaks; `indent` 0: all on one line.
class JsonText {
 public:
  explicit JsonText(int indent) : indent_(indent) {}

  void open(char bracket) {
    text_ += bracket;
    ++level_;
    first_ = true;
  }
  void close(char bracket) {
    --level_;
    // An empty object or list stays on its line.
    if (!first_) dump::append_json_line(text_, level_, indent_);
    text_ += bracket;
    first_ = false;
  }
  /// The next element of a list.
  void element() {
    if (!first_) text_ += indent_ == 0 ? ", " : ",";
    first_ = false;
    dump::append_json_line(text_, level_, indent_);
  }
  void key(std::string_view name) {
    element();
    dump::append_json_string(text_, name);
    text_ += ": ";
  }
  void string(std::string_view value) { dump::append_json_string(text_, value); }
  void number(std::int64_t value) { text_ += std::to_string(value); }
  void node(const Entry& entry, Entry::Index node) { dump::append_json(text_, entry, node, level_, indent_); }
  void raw(std::string_view text) { text_ += text; }

  template <typename List, typename Each>
  void list(const List& values, Each&& each) {
    open('[');
    for (const auto& value : values) {
      element();
      each(value);
    }
    close(']');
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int indent_;
  int level_ = 0;
  bool first_ = true;
};

/// Sections of the entry that the result shows, with what stands for one that is not there.
std::vector<std::pair<std::string_view, std::string_view>> sections(std::string_view name, bool python) {
  const auto parsed = dump::parse_entry_name(name);
  const bool backward_for_python = name.find("forward") == std::string_view::npos;
  const bool backward =
      python || !parsed ? backward_for_python : parsed->direction == dump::Direction::backward;
  if (backward) return {{"input", "[]"}, {"output", "{}"}};
  return {{"input_args", "[]"}, {"input_kwargs", "{}"}, {"output", "{}"}};
}

void root_members(JsonText& json, const Analysis& analysis, std::size_t index) {
  const Root& root = analysis.roots[index];
  const RootDetails& details = analysis.details[index];
  json.key("op_name");
  json.string(root.entry.name);
  json.key("data_info");
  json.open('{');
  for (const auto& [section, absent] : sections(root.entry.name, analysis.python_rules)) {
    json.key(section);
    const Entry::Index node = details.entry.find(0, section);
    if (node == Entry::kNone) {
      json.raw(absent);
    } else {
      json.node(details.entry, node);
    }
  }
  json.close('}');
  json.key("construct_info");
  json.list(details.construct, [&](const std::string& name) { json.string(name); });
  json.key("stack_info");
  json.node(details.stack, details.stack_node);
  if (!analysis.with_path) return;
  json.key("kind");
  json.string(kind_name(root.kind));
  json.key("spread");
  json.list(root.path, [&](const Reached& reached) {
    json.open('{');
    json.key("rank");
    json.number(analysis.ranks[reached.rank].number);
    json.key("op_name");
    json.string(reached.entry.name);
    json.key("from_rank");
    json.number(analysis.ranks[reached.from].number);
    json.close('}');
  });
}

void finding_members(JsonText& json, const EntryFinding& finding, Listing listing) {
  json.key("op_name");
  json.string(finding.name);
  if (listing == Listing::statistics) {
    json.key("finding");
    json.string(finding.what);
    json.key("place");
    json.string(finding.where);
    json.key("text");
    json.string(finding.text);
    return;
  }
  json.key("overflow_level");
  json.string(level_name(finding.level));
  json.key("scene_type");
  json.string(scene_name(finding.scene));
  json.key("input_args_anomaly_indices");
  json.list(finding.bad_arguments, [&](std::size_t at) { json.number(static_cast<std::int64_t>(at)); });
  json.key("input_kwargs_anomaly_keys");
  json.list(finding.bad_keywords, [&](const std::string& key) { json.string(key); });
  json.key("output_anomaly_indices");
  json.list(finding.bad_outputs, [&](std::size_t at) { json.number(static_cast<std::int64_t>(at)); });
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

void line_head(JsonText& json, const Analysis& analysis, std::size_t rank) {
  json.open('{');
  if (!analysis.step.empty()) {
    json.key("step");
    json.string(analysis.step);
  }
  json.key("rank");
  json.number(analysis.ranks[rank].number);
}

}  // namespace

std::string_view kind_name(RootKind kind) {
  switch (kind) {
    case RootKind::produced:
      return "produced";
    case RootKind::communication:
      return "communication";
    case RootKind::external:
      return "external";
    case RootKind::nan_of_inf:
      break;
  }
  return "inf_to_nan";
}

std::string roots_json(const Analysis& analysis) {
  JsonText json(2);
  json.open('{');
  for (const auto& [rank, roots] : by_rank(analysis)) {
    json.key(rank_key(analysis, rank));
    json.list(roots, [&](std::size_t index) {
      json.open('{');
      root_members(json, analysis, index);
      json.close('}');
    });
  }
  json.close('}');
  return json.take();
}

std::string roots_jsonl(const Analysis& analysis) {
  std::string text;
  for (std::size_t i = 0; i < analysis.roots.size(); ++i) {
    JsonText json(0);
    line_head(json, analysis, analysis.roots[i].rank);
    root_members(json, analysis, i);
    json.close('}');
    text += json.take() + "\n";
  }
  return text;
}

std::string findings_json(const Analysis& analysis, Listing listing) {
  JsonText json(2);
  json.open('{');
  for (std::size_t r = 0; r < analysis.findings.size(); ++r) {
    json.key(rank_key(analysis, r));
    json.list(analysis.findings[r].found, [&](const EntryFinding& finding) {
      json.open('{');
      finding_members(json, finding, listing);
      json.close('}');
    });
  }
  json.close('}');
  return json.take();
}

std::string findings_jsonl(const Analysis& analysis, Listing listing) {
  std::string text;
  for (std::size_t r = 0; r < analysis.findings.size(); ++r) {
    for (const EntryFinding& finding : analysis.findings[r].found) {
      JsonText json(0);
      line_head(json, analysis, r);
      finding_members(json, finding, listing);
      json.close('}');
      text += json.take() + "\n";
    }
  }
  return text;
}

}  // namespace msprobe::anomaly
