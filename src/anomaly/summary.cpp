// SPDX-License-Identifier: Apache-2.0
#include "anomaly/summary.hpp"

#include <fmt/format.h>

#include <map>

#include "anomaly/badness.hpp"
#include "anomaly/result.hpp"
#include "dump/stack_json.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr std::size_t kMaxItems = 6;    // of one list
constexpr std::size_t kMaxReached = 8;  // ranks named
constexpr std::size_t kMaxListed = 20;  // lines of a listing

std::string text_of(const Entry& entry, Entry::Index object, std::string_view key) {
  const Entry::Index node = entry.find(object, key);
  return node == Entry::kNone ? std::string() : entry.python_str(node);
}

std::string describe_tensor(const Entry& entry, Entry::Index node) {
  std::string type = text_of(entry, node, "dtype");
  if (type.starts_with("torch.")) type.erase(0, 6);
  std::string out = type + text_of(entry, node, "shape");
  for (const auto& [key, label] : {std::pair("Min", "min"), std::pair("Max", "max")}) {
    const std::string value = text_of(entry, node, key);
    if (!value.empty() && value != "None") out += fmt::format(" {} {}", label, value);
  }
  return out;
}

std::string describe_items(const Entry& entry, Entry::Index container, std::string_view separator) {
  std::string out;
  std::size_t count = 0;
  const bool object = entry.is(container, NodeKind::object);
  entry.children(container, [&](Entry::Index item) {
    if (++count > kMaxItems) return;
    if (!out.empty()) out += separator;
    if (object) out += std::string(entry.key(item)) + "=";
    out += describe(entry, item);
  });
  if (count > kMaxItems) out += fmt::format("{}... {} in all", separator, count);
  return out;
}

/// One line for the sections that are there.
std::string describe_sections(const Entry& entry, std::initializer_list<std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) {
    const Entry::Index section = entry.find(0, name);
    if (section == Entry::kNone || entry.falsy(section)) continue;
    if (!out.empty()) out += "; ";
    out += entry.is_container(section) ? describe_items(entry, section, "; ") : describe(entry, section);
  }
  return out.empty() ? "none" : out;
}

std::string bad_parameters(const Entry& entry) {
  const Entry::Index section = entry.find(0, "parameters");
  if (!entry.is(section, NodeKind::object)) return {};
  std::string names;
  entry.children(section, [&](Entry::Index item) {
    if (bad_anywhere(entry, item) != 0) names += (names.empty() ? "" : ", ") + std::string(entry.key(item));
  });
  return names;
}

std::string verdict(const AnomalyRoot& root) {
  const std::string out(bad_name(root.outputs));
  switch (root.kind) {
    case RootKind::produced:
      return "produced " + out + " from clean inputs";
    case RootKind::communication:
      return root.absent_ranks.empty() ? "produced " + out + " although no rank sent any"
                                       : "received " + out + " although no rank that was read sent any";
    case RootKind::external:
      return "received " + std::string(bad_name(root.inputs)) + " that no entry recorded before it produced";
    case RootKind::raised:
      return "raised NaN or Inf on the device (is_nan is not 0)";
    case RootKind::inf_to_nan:
      break;
  }
  return "produced NaN from inputs with Inf";
}

std::string phase_text(RootPhase phase) {
  constexpr std::string_view kNames[] = {"before communication", "during communication",
                                         "outside of communication", ""};
  return std::string(kNames[static_cast<std::size_t>(phase)]);
}

std::string join_numbers(const std::vector<std::int64_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size() && i < kMaxReached; ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  if (numbers.size() > kMaxReached) out += ", ...";
  return out;
}

class Answer {
 public:
  Answer(const Analysis& analysis, const AnomalyRules& rules, const AnswerStyle& style)
      : analysis_(analysis), rules_(rules), style_(style) {}

  std::string run() {
    for (std::size_t i = 0; i < analysis_.roots.size(); ++i) root(i);
    return std::move(out_);
  }

 private:
  void root(std::size_t index) {
    const AnomalyRoot& root = analysis_.roots[index];
    const RootDetails& details = analysis_.details[index];
    const std::string step = analysis_.step.empty() ? "" : display(analysis_.step) + " ";
    const std::string phase = phase_text(root.phase);
    out_ += fmt::format("{}rank {}: {} {}{}\n", step, analysis_.ranks[root.rank].number,
                        report::paint(root.entry.name, report::Color::red, style_.color), verdict(root),
                        phase.empty() ? "" : ", " + phase);
    line("input", describe_sections(details.entry, {"input_args", "input_kwargs", "input"}));
    line("output", describe_sections(details.entry, {"output"}));
    if (const std::string names = bad_parameters(details.entry); !names.empty())
      line("parameter", names + ": already bad; the fault is earlier (the optimizer's step?)");
    if (details.construct.size() > 1) {
      std::string path;
      for (std::size_t k = 0; k + 1 < details.construct.size(); ++k)
        path += (k == 0 ? "" : " > ") + details.construct[k];
      line("module", path);
    }
    if (const std::string frame = dump::user_frame(details.frames, rules_.framework_frames); !frame.empty())
      line("at", frame + (details.frames_of_forward ? "  (its forward call)" : ""));
    if (!root.absent_ranks.empty())
      line("missing", "missing from this dump or unreadable: rank " + join_numbers(root.absent_ranks) +
                          "; the origin may be there");
    if (root.kind == RootKind::raised)
      line("note", "task nan_check records no values: its inputs may have been bad already");
    if (root.contained) line("note", "its bad values spread no further: perhaps a mask");
    const std::optional<SuspectEntry>& external = analysis_.ranks[root.rank].scan.external;
    if (external && (external->inputs & kNan) != 0 && external->place.position < root.entry.position)
      line("note", "NaN from outside the recording entered before it, at " + external->place.name);
    spread(root);
  }

  void spread(const AnomalyRoot& root) {
    const RankScan& own = analysis_.ranks[root.rank].scan;
    const bool raised = root.kind == RootKind::raised;
    std::string text =
        fmt::format("{} of {} entries of rank {} {} NaN or Inf",
                    human_count(raised ? own.raised_entries : own.bad_entries), human_count(own.entries),
                    analysis_.ranks[root.rank].number, raised ? "raised" : "hold");
    line("spread", text);
    for (std::size_t k = 0; k < root.path.size() && k < kMaxReached; ++k) {
      const Reached& reached = root.path[k];
      // If the communication itself is the root, no rank sent the values.
      const bool sent = root.kind != RootKind::communication || reached.from != root.rank;
      const std::string from = sent ? fmt::format("from rank {} ", analysis_.ranks[reached.from].number) : "";
      line("",
           fmt::format("rank {} {}by {}", analysis_.ranks[reached.rank].number, from, reached.entry.name));
    }
    if (root.path.size() > kMaxReached)
      line("", fmt::format("and {} more ranks", root.path.size() - kMaxReached));
    others(root);
  }

  /// Ranks with bad values that no recorded communication took there.
  void others(const AnomalyRoot& root) {
    std::vector<bool> known(analysis_.ranks.size(), false);
    for (const AnomalyRoot& each : analysis_.roots) {
      known[each.rank] = true;
      for (const Reached& reached : each.path) known[reached.rank] = true;
    }
    if (&root != &analysis_.roots.back()) return;
    std::size_t count = 0;
    for (std::size_t r = 0; r < known.size(); ++r) {
      const RankScan& scan = analysis_.ranks[r].scan;
      if (known[r] || !scan.first_bad) continue;
      if (++count <= kMaxReached)
        line("also", fmt::format("rank {}, first at {}", analysis_.ranks[r].number, scan.first_bad->name));
    }
    if (count > kMaxReached) line("", fmt::format("and {} more ranks", count - kMaxReached));
  }

  void line(std::string_view label, std::string_view text) {
    out_ += fmt::format("  {:<10}", label) + report::elide_middle(text, report::kWholeLine) + "\n";
  }

  const Analysis& analysis_;
  const AnomalyRules& rules_;
  const AnswerStyle& style_;
  std::string out_;
};

}  // namespace

std::string describe(const Entry& entry, Entry::Index node) {
  if (entry.is(node, NodeKind::array)) return "[" + describe_items(entry, node, ", ") + "]";
  if (!entry.is(node, NodeKind::object)) return entry.python_str(node);
  if (entry.find(node, "dtype") != Entry::kNone) return describe_tensor(entry, node);
  if (entry.find(node, "group_ranks") != Entry::kNone) return "group " + text_of(entry, node, "group_ranks");
  if (const Entry::Index tensor = entry.find(node, "tensor"); tensor != Entry::kNone)
    return fmt::format("{} {} {}", text_of(entry, node, "op"), text_of(entry, node, "peer"),
                       describe(entry, tensor));
  if (const Entry::Index value = entry.find(node, "value"); value != Entry::kNone)
    return entry.python_str(value);
  return "{" + describe_items(entry, node, ", ") + "}";
}

std::string render_answer(const Analysis& analysis, const AnomalyRules& rules, const AnswerStyle& style) {
  return Answer(analysis, rules, style).run();
}

std::string render_listing(const Analysis& analysis, AnomalyListing listing, const AnswerStyle& style) {
  std::string out;
  std::map<std::string, std::size_t> counts;
  std::uint64_t entries = 0;
  report::TerminalStyle columns;
  columns.width = style.width;
  columns.color = style.color;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t r = 0; r < analysis.findings.size(); ++r) {
    entries += analysis.findings[r].entries;
    for (const EntryFinding& finding : analysis.findings[r].found) {
      const bool levels = listing == AnomalyListing::levels;
      ++counts[levels ? std::string(level_name(finding.level)) : finding.what];
      if (rows.size() == kMaxListed) continue;
      rows.push_back({"rank " + std::to_string(analysis.ranks[r].number), finding.name,
                      levels ? std::string(level_name(finding.level)) : finding.what,
                      levels ? std::string(scene_name(finding.scene)) : finding.where + " " + finding.text});
      columns.severities.push_back(finding.level == AnomalyLevel::critical ? report::Severity::error
                                   : finding.level == AnomalyLevel::high   ? report::Severity::warning
                                                                           : report::Severity::none);
    }
  }
  if (!analysis.step.empty()) out += display(analysis.step) + ": ";
  out += fmt::format("{} entries in {} ranks", human_count(entries), analysis.ranks.size());
  std::size_t all = 0;
  for (const auto& [what, count] : counts) {
    out += fmt::format("; {} {}", human_count(count), what);
    all += count;
  }
  out += all == 0 ? "; nothing found\n" : "\n";
  out += report::render_columns({}, rows, columns);
  if (all > rows.size()) out += fmt::format("  and {} more in the result\n", human_count(all - rows.size()));
  return out;
}

}  // namespace msprobe::anomaly
