// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/severity.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

std::string painted(PrecheckVerdict verdict, bool color) {
  const bool error = verdict == PrecheckVerdict::error;
  return report::paint(error ? "error  " : "warning", error ? report::Color::red : report::Color::yellow,
                       color);
}

/// Counts the operations that gave nothing that could be judged, such as an assignment.
std::string without_output(std::size_t count) {
  return count == 0 ? std::string() : fmt::format(", {} without output", human_count(count));
}

std::string remarks(const CheckSummary& summary) {
  std::string text;
  if (summary.done_before > 0)
    text += fmt::format("; {} were done in an earlier run", human_count(summary.done_before));
  if (summary.duplicates > 0)
    text += fmt::format("; {} skipped that differ in values only", human_count(summary.duplicates));
  if (summary.synthetic > 0) text += fmt::format("; {} with random data", human_count(summary.synthetic));
  if (summary.lost_runners > 0) text += fmt::format("; {} lost a runner", human_count(summary.lost_runners));
  return text;
}

std::string wrong_line(const SidesRow& row, bool color) {
  const SideOperation& wrong = row.sides[row.wrong == WrongSide::b ? 1 : 0];
  const CallDirection direction =
      wrong[CallDirection::forward].verdict == row.verdict ? CallDirection::forward : CallDirection::backward;
  return fmt::format("\n  {}  {:4}  {}{}  {}", painted(row.verdict, color), word(row.wrong),
                     display(wrong.name), direction == CallDirection::backward ? ", backward" : "",
                     display(wrong[direction].reason));
}

std::string missing_line(const SidesRow& row, bool color) {
  const SideOperation& a = row.sides[0];
  const bool backward_alone = !a.name.empty() && !row.sides[1].name.empty();
  const bool a_lacks = a[CallDirection::forward].missing || a[CallDirection::backward].missing;
  return fmt::format("\n  {}  {:4}  {}{}", report::paint("missing", report::Color::yellow, color),
                     a_lacks ? "in A" : "in B", display(a.name.empty() ? row.sides[1].name : a.name),
                     backward_alone ? ", its backward" : "");
}

/// Lists the rows that are not right, then those that one side lacks.
std::string side_lines(const SidesResult& sides, bool color) {
  std::string text;
  const auto list = [&](auto&& wanted, auto&& line) {
    std::size_t count = 0;
    for (const SidesRow& row : sides.rows) {
      if (wanted(row) && ++count <= kShownCalls) text += line(row, color);
    }
    if (count > kShownCalls) text += fmt::format("\n  and {} more", human_count(count - kShownCalls));
  };
  const auto is_wrong = [](const SidesRow& row) {
    return row.verdict == PrecheckVerdict::error || row.verdict == PrecheckVerdict::warning;
  };
  list(is_wrong, wrong_line);
  list([&](const SidesRow& row) { return row.missing && !is_wrong(row); }, missing_line);
  return text;
}

}  // namespace

std::string counts_text(std::size_t errors, std::size_t warnings, std::size_t skips, bool color) {
  using report::Severity;
  std::string text =
      report::count_text(errors, "error", errors == 0 ? Severity::none : Severity::error, color);
  text += ", ";
  text += report::count_text(warnings, "warning", warnings == 0 ? Severity::none : Severity::warning, color);
  return text + fmt::format(", {} SKIP", human_count(skips));
}

void Tally::take(const OperationReport& result) {
  cover(result, coverage_);
  const PrecheckVerdict verdict = std::max(result.forward_verdict, result.backward_verdict);
  ++counts_[static_cast<std::size_t>(verdict)];
  const bool bad = verdict == PrecheckVerdict::error || verdict == PrecheckVerdict::warning;
  if (!bad || shown_.size() >= kShownCalls) {
    hidden_ += bad;
    return;
  }
  shown_.push_back({result.name, verdict, result.reason});
}

std::string Tally::lines(bool color) const {
  std::string text;
  for (const Shown& call : shown_) {
    text += "\n  " + painted(call.verdict, color) + "  " + display(call.name);
    if (!call.reason.empty()) text += "  " + display(call.reason);
  }
  if (hidden_ > 0) text += fmt::format("\n  and {} more", human_count(hidden_));
  return text;
}

std::string summary_text(const CheckSummary& summary, const Tally& tally, bool recorded, bool color) {
  std::string text = fmt::format("{} operations", human_count(summary.calls));
  if (!summary.torch.empty()) {
    text += recorded ? fmt::format(" as recorded, by PyTorch {}", display(summary.torch))
            : summary.mindspore.empty()
                ? fmt::format(" on {}, PyTorch {}", display(summary.device), display(summary.torch))
                : fmt::format(" on {}, MindSpore {}, by PyTorch {}", display(summary.device),
                              display(summary.mindspore), display(summary.torch));
  }
  text += fmt::format(": {} pass, ", human_count(tally.of(PrecheckVerdict::pass)));
  text += counts_text(tally.of(PrecheckVerdict::error), tally.of(PrecheckVerdict::warning),
                      tally.of(PrecheckVerdict::skip), color);
  text += without_output(tally.of(PrecheckVerdict::none));
  return text + remarks(summary) + tally.lines(color);
}

std::string against_text(const AgainstResult& result, const AgainstOptions& options, bool color) {
  const SidesResult& sides = result.sides;
  const std::string& torch =
      result.summaries[0].torch.empty() ? result.summaries[1].torch : result.summaries[0].torch;
  std::string text = fmt::format("{} operations of two dumps as recorded", human_count(sides.rows.size()));
  if (!torch.empty()) text += ", by PyTorch " + display(torch);
  text += "\n  " + display(sentence(sides));
  const std::array<const std::string*, 2> dumps = {&options.check.dump_json, &options.other_json};
  for (std::size_t side = 0; side < 2; ++side) {
    const SideCounts& counts = sides.counts[side];
    text += fmt::format("\n  {}  {}: {} operations: {} pass, {}", side == 0 ? "A" : "B",
                        display(*dumps[side]), human_count(counts.operations), human_count(counts.follow),
                        counts_text(counts.errors, counts.warnings, counts.open, color));
    if (counts.missing > 0) text += fmt::format(", {} missing", human_count(counts.missing));
    text += remarks(result.summaries[side]);
  }
  if (sides.renamed) text += "\n  operations are paired by what they do: some have different names in B";
  text += side_lines(sides, color);
  for (const std::string& file : result.files) text += "\n  written: " + display(file);
  return text;
}

}  // namespace msprobe::precheck
