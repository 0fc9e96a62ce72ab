// SPDX-License-Identifier: Apache-2.0
#include "compare/reports/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compare/reports/result_table.hpp"
#include "compare/reports/stack_frames.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::size_t kNeighbours = 3;
constexpr std::size_t kMostRows = 64;  // of one entry, told in full
constexpr std::size_t kSuggestions = 5;

/// Rows of one entry; they stand together.
struct Group {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The entry that a row belongs to, on the side that has it.
std::string_view entry_of(const RankResult& result, const Row& row) {
  const Side& side = row.has_target() ? result.target : result.golden;
  const Item& item = row.has_target() ? result.target_item(row) : result.golden_item(row);
  return side.text(side.apis[item.api].name);
}

std::vector<Group> groups_of(const RankResult& result) {
  std::vector<Group> groups;
  std::string_view last;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const std::string_view entry = entry_of(result, result.rows[i]);
    if (groups.empty() || entry != last) groups.push_back({i, i});
    groups.back().last = i + 1;
    last = entry;
  }
  return groups;
}

struct Print {
  std::string operator()(const report::Text& text) const { return std::string(text.value); }
  std::string operator()(const report::Structured& text) const { return std::string(text.value); }
  std::string operator()(double value) const { return python_repr(value); }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
};

/// What one line tells of a row: a property on both sides and, where there is one, their difference.
struct Property {
  const char* label;
  std::array<const char*, 4> columns;
};
constexpr std::array<Property, 9> kProperties = {{
    {"name", {"NPU Name", "Bench Name", nullptr, nullptr}},
    {"dtype", {"NPU Dtype", "Bench Dtype", nullptr, nullptr}},
    {"shape", {"NPU Tensor Shape", "Bench Tensor Shape", nullptr, nullptr}},
    {"requires_grad", {"NPU Requires_grad", "Bench Requires_grad", nullptr, nullptr}},
    {"checksum", {"NPU MD5", "BENCH MD5", nullptr, nullptr}},
    {"max", {"NPU max", "Bench max", "Max diff", "MaxRelativeErr"}},
    {"min", {"NPU min", "Bench min", "Min diff", "MinRelativeErr"}},
    {"mean", {"NPU mean", "Bench mean", "Mean diff", "MeanRelativeErr"}},
    {"l2norm", {"NPU l2norm", "Bench l2norm", "L2norm diff", "NormRelativeErr"}},
}};

class Story {
 public:
  Story(const RankResult& result, std::size_t width, bool color)
      : result_(result), table_(result_table(result)), width_(width), color_(color) {}

  /// `told` are the rows to be told of those of the entry.
  std::string tell(const std::vector<Group>& groups, std::size_t which, Group told) {
    const std::string_view entry = entry_of(result_, result_.rows[groups[which].first]);
    out_ = report::paint(entry, report::Color::bold, color_) + "\n";
    out_ += fmt::format("  {} of {} entries{}\n", which + 1, groups.size(),
                        label().empty() ? "" : " of " + display(label()));
    const std::size_t end = std::min(told.last, told.first + kMostRows);
    for (std::size_t i = told.first; i < end; ++i) tell_row(i);
    if (end < told.last) out_ += fmt::format("\nand {} rows more, to be named one by one\n", told.last - end);
    tell_stack(entry);
    tell_neighbours(groups, which);
    return std::move(out_);
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
    return report::paint(verdict_name(which), color, color_);
  }

  std::string cell(std::string_view column) const {
    const std::vector<std::string>& columns = table_->columns();
    const auto found = std::find(columns.begin(), columns.end(), column);
    if (found == columns.end()) return {};
    return std::visit(Print{}, cells_[static_cast<std::size_t>(found - columns.begin())]);
  }

  void tell_row(std::size_t index) {
    const Row& row = result_.rows[index];
    report::Scratch scratch;
    table_->row(index, cells_, scratch);
    out_ += "\n" + report::paint(result_.name_of(row), report::Color::bold, color_) + ": " +
            verdict(row.verdict) + "\n";
    for (const std::string& message : row.messages) out_ += "  " + display(message) + "\n";
    const bool differences = result_.mode == Mode::statistics;
    std::vector<std::string> header = {"", "target", "golden"};
    if (differences) header.insert(header.end(), {"difference", "relative"});
    std::vector<std::vector<std::string>> lines;
    for (const Property& property : kProperties) {
      std::vector<std::string> line = {property.label};
      for (std::size_t i = 0; i < (differences ? 4U : 2U); ++i) {
        line.push_back(property.columns[i] == nullptr ? std::string() : cell(property.columns[i]));
      }
      if (line[1].empty() && line[2].empty()) continue;
      // Names are long, and nearly always the same on both sides.
      if (property.label == kProperties.front().label && (line[1] == line[2] || !row.matched())) continue;
      lines.push_back(std::move(line));
    }
    out_ += report::render_columns(header, lines, style());
    if (result_.mode != Mode::tensor) return;
    lines.clear();
    for (const std::string& name : metric_columns(result_.mode)) lines.push_back({name, cell(name)});
    out_ += report::render_columns({}, lines, style());
  }

  /// The user's own frames say where in the model this is; what lies between them and the call comes after.
  void tell_stack(std::string_view entry) {
    const auto* frames = result_.target.stacks ? result_.target.stacks->find(entry) : nullptr;
    out_ += "\ncalled from\n";
    if (frames == nullptr) {
      out_ += "  no stack was recorded for this entry\n";
      return;
    }
    for (const bool own : {true, false}) {
      bool first = true;
      for (const std::string& frame : *frames) {
        if (is_own_frame(frame) != own) continue;
        if (first && !own) out_ += "  in libraries\n";
        first = false;
        tell_frame(frame, own ? 2 : 4);
      }
    }
  }

  /// A frame's second line is the code.
  void tell_frame(std::string_view frame, std::size_t indent) {
    const std::size_t line_end = std::min(frame.find('\n'), frame.size());
    std::string_view place = frame.substr(0, line_end);
    while (place.ends_with(' ') || place.ends_with(',')) place.remove_suffix(1);
    out_ += std::string(indent, ' ') + display(place) + "\n";
    std::string_view code = frame.substr(line_end);
    while (code.starts_with('\n') || code.starts_with(' ')) code.remove_prefix(1);
    if (!code.empty()) out_ += std::string(indent + 4, ' ') + display(code) + "\n";
  }

  void tell_neighbours(const std::vector<Group>& groups, std::size_t which) {
    out_ += "\nbefore and after\n";
    const std::size_t end = std::min(groups.size(), which + kNeighbours + 1);
    for (std::size_t i = which - std::min(which, kNeighbours); i < end; ++i) {
      Verdict worst = Verdict::pass;
      for (std::size_t k = groups[i].first; k < groups[i].last; ++k) {
        worst = std::max(worst, result_.rows[k].verdict);
      }
      const std::string padding(sizeof("warning") - verdict_name(worst).size(), ' ');
      out_ += fmt::format("{} {}{} {}\n", i == which ? ">" : " ", verdict(worst), padding,
                          display(entry_of(result_, result_.rows[groups[i].first])));
    }
  }

  report::TerminalStyle style() const { return {.width = width_, .indent = 2, .color = color_}; }

  const RankResult& result_;
  std::unique_ptr<report::Table> table_;
  std::size_t width_;
  bool color_;
  std::vector<report::Cell> cells_;
  std::string out_;
};

}  // namespace

std::string explain(const RankResult& result, std::string_view name, std::size_t width, bool color) {
  const std::vector<Group> groups = groups_of(result);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string_view entry = entry_of(result, result.rows[groups[i].first]);
    if (entry == name) return Story(result, width, color).tell(groups, i, groups[i]);
    for (std::size_t k = groups[i].first; k < groups[i].last; ++k) {
      if (result.name_of(result.rows[k]) == name) {
        return Story(result, width, color).tell(groups, i, {k, k + 1});
      }
    }
  }
  return {};
}

std::vector<SimilarName> similar_entries(const RankResult& result, std::string_view name, std::size_t count) {
  std::vector<SimilarName> best;
  const auto nearer = [](const SimilarName& a, const SimilarName& b) { return a.distance < b.distance; };
  for (const Group& group : groups_of(result)) {
    const std::string_view entry = entry_of(result, result.rows[group.first]);
    // What was typed may be a part of the name, which is nearer than any other name of its length.
    const bool inside = entry.find(name) != std::string_view::npos;
    const std::size_t distance = inside ? 0 : edit_distance(name, entry);
    if (best.size() == count && distance >= best.back().distance) continue;
    const SimilarName found{distance, std::string(entry)};
    best.insert(std::upper_bound(best.begin(), best.end(), found, nearer), found);
    if (best.size() > count) best.pop_back();
  }
  return best;
}

void throw_no_such_entry(std::string_view name, std::vector<SimilarName> similar) {
  std::stable_sort(similar.begin(), similar.end(),
                   [](const SimilarName& a, const SimilarName& b) { return a.distance < b.distance; });
  std::vector<std::string> names;
  for (const SimilarName& one : similar) {
    const std::string shown = display(one.name);
    if (names.size() < kSuggestions && std::find(names.begin(), names.end(), shown) == names.end()) {
      names.push_back(shown);
    }
  }
  std::string hint;
  for (const std::string& one : names) hint += (hint.empty() ? "the nearest names are " : ", ") + one;
  throw UsageError("--explain: no entry or row is called '" + display(name) + "'", hint);
}

}  // namespace msprobe::compare
