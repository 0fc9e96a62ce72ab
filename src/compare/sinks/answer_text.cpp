// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/answer_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "compare/sinks/code_place.hpp"
#include "diagnosis/sentences.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using diagnosis::Line;
using report::Color;

constexpr std::size_t kIndent = 3;
constexpr std::size_t kLabelWidth = 9;  // "before   "
constexpr std::size_t kGap = 3;
constexpr std::size_t kLeastWidth = 40;  // of a terminal; on a narrower one lines are longer than it
constexpr std::size_t kMostWidth = 100;  // that is easy to read

class AnswerText {
 public:
  AnswerText(const Screen& screen, bool judged)
      : width_(screen.width == report::kWholeLine ? screen.width
                                                  : std::clamp(screen.width, kLeastWidth, kMostWidth)),
        color_(screen.color),
        links_(screen.links),
        judged_(judged) {}

  std::string of(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      if (line.heads) {
        add_headline(line);
      } else if (line.name == diagnosis::kWhere) {
        add_code(line.text);
      } else {
        add_line(line.name == diagnosis::kWhy ? "" : line.name, line.text);
      }
    }
    return std::move(out_);
  }

 private:
  /// Green only if all was judged.
  Color color_of(const Line& line) const {
    if (line.confidence == diagnosis::name_of(diagnosis::Confidence::certain)) return Color::red;
    if (!line.confidence.empty() || line.name.starts_with("not clear")) return Color::yellow;
    if (!line.name.starts_with(diagnosis::kNoCulprit)) return Color::none;
    return judged_ ? Color::green : Color::yellow;
  }

  /// `culprit: blocks.2 > Tensor.add.16.forward, step 0      certain`
  void add_headline(const Line& line) {
    const std::string title = line.name + ":";
    std::vector<std::string> lines = report::wrap(title + " " + display(line.text), width_);
    // All lines but the first are indented, so they are wrapped to less width.
    if (lines.size() > 1) {
      lines = report::wrap(title + " " + display(line.text), width_ - kIndent);
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::string text = i == 0 ? lines[i].substr(std::min(lines[i].size(), title.size())) : lines[i];
      if (!line.confidence.empty()) text = report::paint(text, Color::bold, color_);
      out_ += i == 0 ? report::paint(title, color_of(line), color_) : std::string(kIndent, ' ');
      out_ += text;
      if (i + 1 == lines.size())
        add_confidence(line, report::display_width(lines[i]) + (i == 0 ? 0 : kIndent));
      out_ += '\n';
    }
  }

  /// Puts the confidence at the end of the line on a terminal.
  void add_confidence(const Line& line, std::size_t used) {
    if (line.confidence.empty()) return;
    const std::size_t needed = used + kGap + line.confidence.size();
    if (needed > width_) {
      out_ += '\n' + std::string(kIndent, ' ');
    } else {
      out_ += std::string(width_ == report::kWholeLine ? kGap : width_ - used - line.confidence.size(), ' ');
    }
    out_ += report::paint(line.confidence, color_of(line), color_);
  }

  void add_line(std::string_view label, std::string_view text) {
    const std::size_t indent = kIndent + (label.empty() ? 0 : std::max(kLabelWidth, label.size() + 1));
    bool first = true;
    for (const std::string& line : report::wrap(display(text), width_ - indent)) {
      if (first && !label.empty()) {
        out_ += std::string(kIndent, ' ') + report::paint(label, Color::dim, color_) +
                std::string(indent - kIndent - label.size(), ' ');
      } else {
        out_ += std::string(indent, ' ');
      }
      out_ += line + '\n';
      first = false;
    }
  }

  /// `model.py:12   the line`, in the form that editors and terminals recognize.
  void add_code(std::string_view where) {
    const CodePlace code_at = code_place(where);
    const std::optional<dump::SourceLine>& found = code_at.line;
    if (!found) return add_line("", where);
    std::string prefix(kIndent, ' ');
    if (code_at.in_golden) prefix += diagnosis::kInGolden;
    const std::string place = display(found->file) + ":" + std::string(found->number);
    const std::string code = display(found->code);
    std::string shown = report::paint(place, Color::cyan, color_);
    if (links_) shown = report::link_to_file(shown, std::string(found->file), found->number);
    out_ += prefix + shown;
    const std::size_t used = prefix.size() + report::display_width(place) + kGap;
    if (!code.empty() && used + report::display_width(code) <= width_) {
      out_ += std::string(kGap, ' ') + code;
    } else if (!code.empty()) {
      for (const std::string& line : report::wrap(code, width_ - 2 * kIndent))
        out_ += '\n' + std::string(2 * kIndent, ' ') + line;
    }
    out_ += '\n';
  }

  std::size_t width_;
  bool color_;
  bool links_;
  bool judged_;
  std::string out_;
};

}  // namespace

std::string answer_text(const diagnosis::Diagnosis& diagnosis, const Screen& screen, bool judged) {
  return AnswerText(screen, judged && diagnosis.is_judged()).of(diagnosis::answer(diagnosis));
}

}  // namespace msprobe::compare
