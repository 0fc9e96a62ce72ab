// SPDX-License-Identifier: Apache-2.0
#include "grad_compare/similarity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string_view>

#include "report/xml_text.hpp"
#include "support/text.hpp"

namespace msprobe::grad_compare {
namespace {

constexpr std::size_t kMostColumns = 240;
constexpr std::size_t kMostRows = 300;
constexpr double kChance = 0.5;  // unrelated signs agree in half of the elements
constexpr double kChartHeight = 180;
constexpr double kRowHeight = 16;
constexpr std::size_t kMostLabels = 16;     // numbers of steps below a picture
constexpr std::size_t kOfLabelsNarrow = 4;  // a narrow window shows one of this many labels

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>msprobe grad_compare</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; --page: #f6f6f4; --panel: #ffffff; --text: #1c1e21; --muted: #686d76; --line: #e2e2de;
  --lost: #a8003f; --course: #1f5fd0; }
@media (prefers-color-scheme: dark) { :root { --page: #15171a; --panel: #1d2024; --text: #e6e7e9; --muted: #9a9fa8;
  --line: #33373d; --lost: #ff6f9f; --course: #7aa7ff; } }
body { margin: 0; padding: clamp(10px, 2vw, 24px); background: var(--page); color: var(--text); font: 14px/1.45 system-ui, sans-serif; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: clamp(12px, 1.6vw, 20px);
  margin: 0 0 clamp(10px, 2vw, 20px); overflow-wrap: anywhere; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 0 0 8px; }
p { margin: 4px 0 10px; } .muted { color: var(--muted); }
.plot { display: flex; } .names { flex: none; width: clamp(150px, 36%, 330px); font: 11px/16px ui-monospace, monospace; }
.names > div { direction: rtl; text-align: left; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  padding-right: 6px; } /* names differ at their ends */
.plot > svg:last-child { flex: 1; min-width: 0; overflow: visible; }
svg text { fill: var(--muted); font: 11px ui-monospace, monospace; }
@media (max-width: 900px) { .fine { display: none; } }
.rule { stroke: var(--line); } .course { stroke: var(--course); fill: none; stroke-width: 1.75; }
.point { fill: var(--course); } .suspect { fill: var(--lost); } .lost { fill: var(--lost); }
.cell { fill: none; stroke: var(--line); stroke-width: .5; } .absent { fill: var(--line); }
</style></head><body>
)";

std::string escaped(std::string_view text) {
  std::string out;
  report::append_xml_text(out, display(text));
  return out;
}

/// Steps [first, last) as one column of the picture.
struct PictureColumn {
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<PictureColumn> columns_of(std::size_t steps) {
  const std::size_t count = std::min(steps, kMostColumns);
  std::vector<PictureColumn> columns(count);
  for (std::size_t i = 0; i < count; ++i) columns[i] = {i * steps / count, (i + 1) * steps / count};
  return columns;
}

std::string steps_text(const RankSimilarity& rank, const PictureColumn& column) {
  return column.last - column.first == 1
             ? fmt::format("step {}", rank.steps[column.first])
             : fmt::format("steps {} to {}", rank.steps[column.first], rank.steps[column.last - 1]);
}

class RankPicture {
 public:
  RankPicture(const RankSimilarity& rank, const Similarity& all, std::string& out)
      : rank_(rank), columns_(columns_of(rank.steps.size())), out_(out) {
    for (const SuspectStep& suspect : all.suspects) {
      if (suspect.rank == rank.rank) suspects_.push_back(&suspect);
    }
    width_ = 100 / static_cast<double>(columns_.size());
  }

  void draw() {
    add("<section><h2>rank {}</h2>\n", rank_.rank);
    if (columns_.empty()) {
      add("<p>No step could be compared.</p></section>\n");
      return;
    }
    for (const SuspectStep* suspect : suspects_) add("<p>{}</p>\n", escaped(sentence(*suspect)));
    if (suspects_.empty()) add("<p class=\"muted\">No step is suspect.</p>\n");
    draw_course();
    draw_parameters();
    add("</section>\n");
  }

 private:
  template <typename... Parts>
  void add(fmt::format_string<Parts...> form, Parts&&... parts) {
    fmt::format_to(std::back_inserter(out_), form, std::forward<Parts>(parts)...);
  }

  /// In percent of the picture's width, which depends on the window.
  double x_of(std::size_t column) const { return (static_cast<double>(column) + 0.5) * width_; }
  double y_of(double value, double least) const {
    return 14 + (1 - value) / (1 - least) * (kChartHeight - 34);
  }

  /// The least share of equal signs in the steps of a column; `share_of(step)` may be nothing.
  template <typename ShareOf>
  static std::optional<double> least_in(const PictureColumn& column, const ShareOf& share_of) {
    std::optional<double> least;
    for (std::size_t step = column.first; step < column.last; ++step) {
      const std::optional<EqualShare> share = share_of(step);
      if (!share || share->total == 0) continue;
      least = least ? std::min(*least, share->value()) : share->value();
    }
    return least;
  }
  std::optional<double> least_of_all(const PictureColumn& column) const {
    return least_in(column, [&](std::size_t step) { return std::optional(rank_.summary[step]); });
  }
  std::optional<double> least_of(std::size_t parameter, const PictureColumn& column) const {
    return least_in(column, [&](std::size_t step) { return rank_.shares[parameter][step]; });
  }

  bool is_suspect(const PictureColumn& column) const {
    return std::ranges::any_of(suspects_, [&](const SuspectStep* suspect) {
      return suspect->step >= rank_.steps[column.first] && suspect->step <= rank_.steps[column.last - 1];
    });
  }

  void draw_course() {
    double least = 0.9;
    for (const PictureColumn& column : columns_)
      least = std::min(least, least_of_all(column).value_or(1) - 0.02);
    least = std::max(least, 0.0);
    add("<p class=\"muted\">All parameters: the share of equal signs.</p>\n<div class=\"plot\"><svg "
        "class=\"names\" height=\"{:g}\" aria-hidden=\"true\">",
        kChartHeight);
    std::string rules;
    for (const double line : {1.0, (1 + least) / 2, least}) {
      rules += fmt::format("<line class=\"rule\" x1=\"0\" x2=\"100%\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/>\n",
                           y_of(line, least));
      add("<text text-anchor=\"end\" x=\"100%\" dx=\"-6\" y=\"{:.1f}\">{:.2f}</text>", y_of(line, least) + 4,
          line);
    }
    add("</svg>\n<svg height=\"{:g}\" role=\"img\" aria-label=\"similarity over steps\">\n{}", kChartHeight,
        rules);
    std::string points;
    std::optional<double> before;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::optional<double> value = least_of_all(columns_[i]);
      if (value) {
        if (before)
          add("<line class=\"course\" x1=\"{:.3f}%\" y1=\"{:.1f}\" x2=\"{:.3f}%\" y2=\"{:.1f}\"/>\n",
              x_of(i - 1), y_of(*before, least), x_of(i), y_of(*value, least));
        const bool suspect = is_suspect(columns_[i]);
        points += fmt::format(
            "<circle class=\"{}\" cx=\"{:.3f}%\" cy=\"{:.1f}\" r=\"{}\"><title>{}: {:.4f}</title></circle>\n",
            suspect ? "suspect" : "point", x_of(i), y_of(*value, least), suspect ? 5 : 2,
            steps_text(rank_, columns_[i]), *value);
      }
      before = value;
    }
    add("{}", points);
    draw_steps(kChartHeight - 4);
    add("</svg></div>\n");
  }

  /// Draws the numbers of steps below a picture, as many as fit.
  void draw_steps(double y) {
    const std::size_t apart = (columns_.size() + kMostLabels - 1) / kMostLabels;
    for (std::size_t i = 0; i < columns_.size(); i += apart)
      add("<text{} text-anchor=\"middle\" x=\"{:.3f}%\" y=\"{:g}\">{}</text>",
          i % (apart * kOfLabelsNarrow) == 0 ? "" : " class=\"fine\"", x_of(i), y,
          rank_.steps[columns_[i].first]);
    add("\n");
  }

  /// The parameters that are shown, in the order of the model. If not all fit, those that agree least.
  std::vector<std::size_t> shown_parameters() const {
    std::vector<std::size_t> shown(rank_.parameters.size());
    std::iota(shown.begin(), shown.end(), std::size_t{0});
    if (shown.size() <= kMostRows) return shown;
    std::vector<double> least;
    for (const std::size_t parameter : shown)
      least.push_back(
          least_of(parameter, {0, rank_.steps.size()}).value_or(-1));  // missing values come first
    std::ranges::stable_sort(shown, [&](std::size_t a, std::size_t b) { return least[a] < least[b]; });
    shown.resize(kMostRows);
    std::ranges::sort(shown);
    return shown;
  }

  void draw_parameters() {
    const std::vector<std::size_t> shown = shown_parameters();
    if (shown.size() < rank_.parameters.size())
      add("<p class=\"muted\">The {} of {} parameters with the least agreement.</p>\n", shown.size(),
          rank_.parameters.size());
    const double height = static_cast<double>(shown.size()) * kRowHeight;
    add("<div class=\"plot\"><div class=\"names\">\n");
    for (const std::size_t parameter : shown) {
      const std::string name = escaped(rank_.parameters[parameter]);
      add("<div title=\"{0}\"><bdi dir=\"ltr\">{0}</bdi></div>\n", name);
    }
    add("</div><svg height=\"{:g}\" role=\"img\" aria-label=\"similarity of each parameter over steps\">\n",
        height + 20);
    for (std::size_t row = 0; row < shown.size(); ++row)
      draw_parameter(shown[row], static_cast<double>(row) * kRowHeight);
    draw_steps(height + 14);
    add("</svg></div>\n");
  }

  void draw_parameter(std::size_t parameter, double y) {
    const std::string name = escaped(rank_.parameters[parameter]);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::optional<double> value = least_of(parameter, columns_[i]);
      const double opacity = value ? std::clamp((1 - *value) / (1 - kChance), 0.0, 1.0) : 0.0;
      const double left = x_of(i) - width_ / 2;
      if (!value) {
        add("<rect class=\"absent\" x=\"{:.3f}%\" y=\"{:g}\" width=\"{:.3f}%\" height=\"{:g}\"><title>{}: "
            "not compared</title></rect>",
            left, y + kRowHeight / 2 - 1, width_, 2.0, steps_text(rank_, columns_[i]));
        continue;
      }
      add("<rect class=\"lost\" fill-opacity=\"{:.3f}\" x=\"{:.3f}%\" y=\"{:g}\" width=\"{:.3f}%\" "
          "height=\"{:g}\"><title>{}, {}: {:.4f}</title></rect>\n",
          opacity, left, y + 1, width_, kRowHeight - 2, name, steps_text(rank_, columns_[i]), *value);
    }
    add("<rect class=\"cell\" x=\"0\" y=\"{:g}\" width=\"100%\" height=\"{:g}\"/>\n", y + 1, kRowHeight - 2);
  }

  const RankSimilarity& rank_;
  std::vector<PictureColumn> columns_;
  std::string& out_;
  std::vector<const SuspectStep*> suspects_;
  double width_ = 0;  // of a column, in percent
};

}  // namespace

std::string render_page(const Similarity& similarity, const std::string& first, const std::string& second) {
  std::string out(kHead);
  out += fmt::format(
      "<section><h1>{}</h1>\n<p class=\"muted\">{} and {}. Colour: 1 is clear, {:g} and less (chance) is "
      "full. ",
      escaped(headline(similarity)), escaped(first), escaped(second), kChance);
  out += "Where steps share a column, the smallest value is shown.</p>\n";
  if (!similarity.gaps.empty()) {
    out += "<p>Not compared:</p><ul>\n";
    for (const std::string& gap : similarity.gaps) out += "<li>" + escaped(gap) + "</li>\n";
    out += "</ul>\n";
  }
  out += "</section>\n";
  for (const RankSimilarity& rank : similarity.ranks) RankPicture(rank, similarity, out).draw();
  out += "</body></html>\n";
  return out;
}

}  // namespace msprobe::grad_compare
