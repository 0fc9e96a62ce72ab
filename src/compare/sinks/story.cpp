// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "compare/sinks/packets.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "report/row_blocks.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {
namespace {

using diagnosis::Origin;
using pairing::Pair;
using report::RowRange;
using verdict::Field;
using verdict::RankResult;
using verdict::Verdict;

constexpr std::size_t kNeighbours = 3;
constexpr std::size_t kMostStoryRows = 64;  // of one entry, shown in full
constexpr std::size_t kSuggestions = 5;

/// The entry that a row belongs to, on the side that has it.
std::string_view entry_of(const RankResult& result, const Pair& row) {
  const dump::Side& side = row.has_target() ? result.target : result.golden;
  const dump::Item& item = row.has_target() ? result.target_item(row) : result.golden_item(row);
  return side.text(side.apis[item.api].name);
}

/// The rows of each entry, which are adjacent.
std::vector<RowRange> groups_of(const RankResult& result) {
  std::vector<RowRange> groups;
  std::string_view last;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const std::string_view entry = entry_of(result, result.rows[i]);
    if (groups.empty() || entry != last) groups.push_back({i, i});
    groups.back().last = i + 1;
    last = entry;
  }
  return groups;
}

/// One line about a row: a property on both sides and, if it has a statistic, the difference.
struct Property {
  const char* label;
  Field target;
  Field golden;
  std::optional<dump::Statistic> statistic;
};
constexpr std::array<Property, 9> kProperties = {{
    {"name", Field::target_name, Field::golden_name, {}},
    {"dtype", Field::target_dtype, Field::golden_dtype, {}},
    {"shape", Field::target_shape, Field::golden_shape, {}},
    {"requires_grad", Field::target_grad, Field::golden_grad, {}},
    {"checksum", Field::target_checksum, Field::golden_checksum, {}},
    {"max", Field::target_statistic, Field::golden_statistic, dump::kMax},
    {"min", Field::target_statistic, Field::golden_statistic, dump::kMin},
    {"mean", Field::target_statistic, Field::golden_statistic, dump::kMean},
    {"l2norm", Field::target_statistic, Field::golden_statistic, dump::kNorm},
}};

class Story {
 public:
  Story(const RankRows& rows, const StoryOptions& options)
      : rows_(rows), result_(rows.result()), width_(options.width), color_(options.color) {}

  /// `shown` are the rows of the entry that are shown.
  std::string text(const std::vector<RowRange>& groups, std::size_t which, RowRange shown) {
    const std::string_view entry = entry_of(result_, result_.rows[groups[which].first]);
    out_ = report::paint(entry, report::Color::bold, color_) + "\n";
    out_ += fmt::format("  {} of {} entries{}\n", which + 1, groups.size(),
                        label().empty() ? "" : " of " + display(label()));
    const Pair& first = result_.rows[groups[which].first];
    if (result_.diagnosis && first.has_target()) {
      const auto* finding = result_.diagnosis->finding_of(result_.target_item(first).api);
      if (finding != nullptr) out_ += "  evidence: " + display(diagnosis::evidence_cell(finding)) + "\n";
    }
    if (result_.diagnosis && first.has_target()) find_producers(result_.target_item(first).api);
    const std::size_t end = std::min(shown.last, shown.first + kMostStoryRows);
    for (std::size_t i = shown.first; i < end; ++i) add_row(i);
    if (end < shown.last)
      out_ += fmt::format("\nand {} more rows; pass their names to see them\n", shown.last - end);
    add_stack(entry);
    add_neighbours(groups, which);
    return std::move(out_);
  }

  /// An entry that only golden has. It has no rows, so this prints what golden recorded of it.
  std::string text(const pairing::GoldenOnly& alone) {
    const dump::Side& golden = result_.golden;
    const dump::Api& api = golden.apis[alone.golden];
    out_ = report::paint(golden.text(api.name), report::Color::bold, color_) + "\n  only golden has it";
    if (alone.after != pairing::kNone)
      out_ += ", after " + display(result_.target.text(result_.target.apis[alone.after].name));
    out_ += label().empty() ? "\n\n" : fmt::format("; {}\n\n", display(label()));
    std::vector<std::vector<std::string>> lines;
    for (const std::uint32_t i : api.items()) {
      const dump::Item& item = golden.items[i];
      lines.push_back(
          {display(golden.name(item)), display(golden.text(item.dtype)), display(golden.text(item.shape))});
    }
    return std::move(out_) + report::render_columns({}, lines, style());
  }

 private:
  std::string label() const {
    if (result_.step.empty()) return result_.rank;
    return result_.step + "/" + result_.rank;
  }

  std::string verdict(Verdict which) const {
    const report::Color color = which == Verdict::error     ? report::Color::red
                                : which == Verdict::warning ? report::Color::yellow
                                                            : report::Color::green;
    return report::paint(verdict::verdict_name(which), color, color_);
  }

  std::string cell(Field field, std::size_t which = 0) const {
    const std::optional<std::size_t> place = rows_.cells().place_of(field, which);
    return place ? report::plain_text(cells_[*place]) : std::string();
  }

  struct OriginError {
    Origin origin = Origin::not_compared;
    float error = std::numeric_limits<float>::quiet_NaN();  // e; NaN: not measured
  };

  OriginError origin_of(const Pair& row) const {
    if (!result_.is_diagnosed(row)) return {};
    return {result_.origin(row), result_.diagnosis->error[row.target]};
  }

  std::string origin(Origin which) const {
    const report::Color color = which == Origin::introduced     ? report::Color::red
                                : which == Origin::propagated   ? report::Color::yellow
                                : which == Origin::unexplained  ? report::Color::yellow
                                : which == Origin::not_compared ? report::Color::dim
                                                                : report::Color::green;
    return report::paint(diagnosis::name_of(which), color, color_);
  }

  static std::string error_of(const OriginError& found) {
    return std::isnan(found.error) ? std::string() : ", error " + diagnosis::error_text(found.error);
  }

  /// Notes the outputs of the entries before this one, by content. A module counts only for outputs that no
  /// operation inside it made.
  void find_producers(std::uint32_t api) {
    const diagnosis::ContentKeys keys(result_.target, false);
    for (std::uint32_t i = 0; i < api; ++i) {
      const bool module = result_.target.text(result_.target.apis[i].name).starts_with("Module.");
      producers_.put_outputs(keys, i, module);
    }
  }

  /// Adds the entry that made an input, and the error that the tensor had there.
  void add_producer(const Pair& row) {
    if (!result_.diagnosis || !row.has_target() || result_.target_item(row).state != dump::State::input)
      return;
    const std::uint32_t from =
        producers_.find(measuring::content_key(result_.target, result_.target_item(row)));
    if (from == diagnosis::ContentMap::kUnknown) return;
    const OriginError there{result_.diagnosis->origin[from], result_.diagnosis->error[from]};
    out_ += fmt::format("  from {}: {}{}\n", display(result_.target.name(result_.target.items[from])),
                        origin(there.origin), error_of(there));
  }

  void add_row(std::size_t index) {
    const Pair& row = result_.rows[index];
    report::Scratch scratch;
    rows_.row(index, cells_, scratch);
    out_ += "\n" + report::paint(result_.name_of(row), report::Color::bold, color_) + ": ";
    if (result_.diagnosis) {
      const OriginError found = origin_of(row);
      out_ += fmt::format("{}{}; by fixed limits: ", origin(found.origin), error_of(found));
    }
    out_ += verdict(result_.verdict(index)) + "\n";
    for (const std::string& message : verdict::messages_of(result_, index))
      out_ += "  " + display(message) + "\n";
    add_producer(row);
    const bool differences = result_.mode == measuring::Mode::statistics;
    std::vector<std::string> header = {"", "target", "golden"};
    if (differences) header.insert(header.end(), {"difference", "relative"});
    std::vector<std::vector<std::string>> lines;
    for (const Property& property : kProperties) {
      const std::size_t which = property.statistic.value_or(dump::kMax);
      std::vector<std::string> line = {property.label, cell(property.target, which),
                                       cell(property.golden, which)};
      if (differences) {
        line.push_back(property.statistic ? cell(Field::difference, which) : std::string());
        line.push_back(property.statistic ? cell(Field::relative, which) : std::string());
      }
      if (line[1].empty() && line[2].empty()) continue;
      // Names are long, and nearly always equal on both sides.
      if (property.label == kProperties.front().label && (line[1] == line[2] || !row.matched())) continue;
      lines.push_back(std::move(line));
    }
    out_ += report::render_columns(header, lines, style());
    if (result_.mode != measuring::Mode::tensor) return;
    lines.clear();
    const std::vector<std::string> metrics = rows_.metrics();
    for (std::size_t i = 0; i < metrics.size(); ++i) lines.push_back({metrics[i], cell(Field::metric, i)});
    out_ += report::render_columns({}, lines, style());
  }

  /// The user's own frames come first: they show where in the model this is.
  void add_stack(std::string_view entry) {
    const auto* frames = result_.target.stacks ? result_.target.stacks->find(entry) : nullptr;
    out_ += "\ncalled from\n";
    if (frames == nullptr) {
      out_ += "  no stack was recorded for this entry\n";
      return;
    }
    for (const bool own : {true, false}) {
      bool first = true;
      for (const std::string& frame : *frames) {
        if (dump::is_framework_frame(frame, result_.framework_frames) == own) continue;
        if (first && !own) out_ += "  in the framework\n";
        first = false;
        add_frame(frame, own ? 2 : 4);
      }
    }
  }

  /// The second line of a frame is the code.
  void add_frame(std::string_view frame, std::size_t indent) {
    const std::size_t line_end = std::min(frame.find('\n'), frame.size());
    std::string_view place = frame.substr(0, line_end);
    while (place.ends_with(' ') || place.ends_with(',')) place.remove_suffix(1);
    out_ += std::string(indent, ' ') + display(place) + "\n";
    std::string_view code = frame.substr(line_end);
    while (code.starts_with('\n') || code.starts_with(' ')) code.remove_prefix(1);
    if (!code.empty()) out_ += std::string(indent + 4, ' ') + display(code) + "\n";
  }

  void add_neighbours(const std::vector<RowRange>& groups, std::size_t which) {
    out_ += "\nbefore and after\n";
    const std::size_t end = std::min(groups.size(), which + kNeighbours + 1);
    for (std::size_t i = which - std::min(which, kNeighbours); i < end; ++i) {
      out_ += fmt::format("{} {} {}\n", i == which ? ">" : " ",
                          result_.diagnosis ? origin_of(groups[i]) : verdict_of(groups[i]),
                          display(entry_of(result_, result_.rows[groups[i].first])));
    }
  }

  /// The worst verdict of an entry's rows, as a column.
  std::string verdict_of(const RowRange& group) const {
    Verdict worst = Verdict::pass;
    for (std::size_t k = group.first; k < group.last; ++k) worst = std::max(worst, result_.verdict(k));
    return verdict(worst) + std::string(sizeof("warning") - verdict::verdict_name(worst).size(), ' ');
  }

  /// The origin of the entry's error, and the largest error, as columns.
  std::string origin_of(const RowRange& group) const {
    Origin worst = Origin::equal;
    float largest = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t k = group.first; k < group.last; ++k) {
      const OriginError found = origin_of(result_.rows[k]);
      worst = std::max(worst, found.origin);
      largest = std::fmax(largest, found.error);  // fmax ignores NaN
    }
    const std::string_view name = diagnosis::name_of(worst);
    const std::string error = std::isnan(largest) ? std::string() : diagnosis::error_text(largest);
    return origin(worst) + std::string(sizeof("not compared") - name.size(), ' ') +
           fmt::format("{:<8}", error);
  }

  report::TerminalStyle style() const { return {.width = width_, .indent = 2, .color = color_}; }

  const RankRows& rows_;
  const RankResult& result_;
  std::size_t width_;
  bool color_;
  std::vector<report::Cell> cells_;
  diagnosis::ContentMap producers_;
  std::string out_;
};

/// Throws an error with the most similar names of all ranks.
[[noreturn]] void throw_no_such_entry(std::string_view name, std::vector<SimilarName> similar) {
  std::ranges::stable_sort(
      similar, [](const SimilarName& a, const SimilarName& b) { return a.distance < b.distance; });
  std::vector<std::string> names;
  for (const SimilarName& one : similar) {
    const std::string shown = display(one.name);
    if (names.size() < kSuggestions && std::find(names.begin(), names.end(), shown) == names.end()) {
      names.push_back(shown);
    }
  }
  std::string hint;
  for (const std::string& one : names) hint += (hint.empty() ? "the nearest names are " : ", ") + one;
  throw UsageError("--explain: no entry or row is named '" + display(name) + "'", hint);
}

class Stories final : public Sink {
 public:
  explicit Stories(const StoryOptions& options) : options_(options) {}

  void begin(const TaskPlan& plan) override {
    if (!plan.entries) throw UsageError("--explain supports only dumps with a dump.json");
    stories_.resize(plan.tasks.size());
    similar_.resize(plan.tasks.size());
  }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    const RankRows& entries = *rows->of_entries();
    stories_[task] = explain(entries, options_);
    if (stories_[task].empty()) similar_[task] = similar_entries(entries, options_.entry, kSuggestions);
  }

  void pack(std::size_t task, PacketWriter& packet) const override { packet(stories_[task], similar_[task]); }
  void unpack(std::size_t task, PacketReader& packet) override { packet(stories_[task], similar_[task]); }

  void end(CompareReport& report) override {
    bool asked_all = true;
    std::vector<SimilarName> similar;
    for (std::size_t i = 0; i < stories_.size(); ++i) {
      asked_all = asked_all && report.tasks[i].failure.empty();
      similar.insert(similar.end(), similar_[i].begin(), similar_[i].end());
      if (!report.story.empty() && !stories_[i].empty()) report.story += '\n';
      report.story += stories_[i];
    }
    if (report.story.empty() && asked_all) throw_no_such_entry(options_.entry, std::move(similar));
  }

 private:
  StoryOptions options_;
  std::vector<std::string> stories_;
  std::vector<std::vector<SimilarName>> similar_;
};

}  // namespace

std::string explain(const RankRows& rows, const StoryOptions& options) {
  const RankResult& result = rows.result();
  const std::vector<RowRange> groups = groups_of(result);
  std::string story;
  for (std::size_t i = 0; i < groups.size() && story.empty(); ++i) {
    const std::string_view entry = entry_of(result, result.rows[groups[i].first]);
    if (entry == options.entry) story = Story(rows, options).text(groups, i, groups[i]);
    for (std::size_t k = groups[i].first; k < groups[i].last && story.empty(); ++k) {
      if (result.name_of(result.rows[k]) == options.entry)
        story = Story(rows, options).text(groups, i, {k, k + 1});
    }
  }
  // If calls were added or removed, one name may be a call of the target and another call that golden alone
  // has.
  if (result.alignment) {
    for (const pairing::GoldenOnly& alone : result.alignment->golden_only) {
      if (result.golden.text(result.golden.apis[alone.golden].name) != options.entry) continue;
      if (!story.empty()) story += '\n';
      story += Story(rows, options).text(alone);
    }
  }
  if (!story.empty()) return story;
  // A path of a module means its first call.
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string_view entry = entry_of(result, result.rows[groups[i].first]);
    for (const std::string_view kind : {"Module.", "Cell."}) {
      const std::string start = std::string(kind) + options.entry + ".";
      // The rest of the name must be class, direction and call.
      if (entry.starts_with(start) && std::ranges::count(entry.substr(start.size()), '.') == 2)
        return Story(rows, options).text(groups, i, groups[i]);
    }
  }
  return {};
}

std::vector<SimilarName> similar_entries(const RankRows& rows, std::string_view name, std::size_t count) {
  const RankResult& result = rows.result();
  std::vector<SimilarName> best;
  const auto nearer = [](const SimilarName& a, const SimilarName& b) { return a.distance < b.distance; };
  for (const RowRange& group : groups_of(result)) {
    const std::string_view entry = entry_of(result, result.rows[group.first]);
    // A part of a name counts as nearer than any other name.
    const bool inside = entry.find(name) != std::string_view::npos;
    const std::size_t distance = inside ? 0 : edit_distance(name, entry);
    if (best.size() == count && distance >= best.back().distance) continue;
    const SimilarName found{distance, std::string(entry)};
    best.insert(std::upper_bound(best.begin(), best.end(), found, nearer), found);
    if (best.size() > count) best.pop_back();
  }
  return best;
}

std::unique_ptr<Sink> story_sink(const StoryOptions& options) {
  return std::make_unique<Stories>(options);
}

}  // namespace msprobe::compare
