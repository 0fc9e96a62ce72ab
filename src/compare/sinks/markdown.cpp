// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/markdown.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <vector>

#include "compare/sinks/answer_text.hpp"
#include "compare/sinks/packets.hpp"
#include "compare/sinks/texts.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::size_t kMostBytes = 60'000;
constexpr std::size_t kMostRows = 500;  // kept of each task; more would not fit anyway
constexpr std::size_t kTail = 200;      // room for the lines about rows that are left out

std::string heading(const TaskSummary& task) {
  const std::string label = task.label.empty() ? task.target : task.label;
  if (!task.failure.empty())
    return fmt::format("**{}** failed: {}\n", markdown_cell(label), markdown_cell(task.failure));
  if (task.left_out)
    return fmt::format("**{}** left out: an earlier step of this rank has certain evidence\n",
                       markdown_cell(label));
  return fmt::format(
      "**{}**: {} rows: {} error, {} warning, {} pass{}{}{}{}\n", markdown_cell(label),
      human_count(task.rows), human_count(task.errors), human_count(task.warnings),
      human_count(task.passed()),
      task.unknown > 0 ? fmt::format("; {} not compared", human_count(task.unknown)) : "",
      task.rows_left_out > 0 ? fmt::format("; {} left out", human_count(task.rows_left_out)) : "",
      task.unmatched > 0 ? fmt::format("; {} unmatched", human_count(task.unmatched)) : "",
      task.golden_only > 0 ? fmt::format("; {} only in golden", human_count(task.golden_only)) : "");
}

/// Makes a text safe for a block of code: nothing in it ends the block.
std::string fenced(std::string text) {
  std::replace(text.begin(), text.end(), '`', '\'');
  return text;
}

class Markdown final : public KeepingSink<std::vector<NotedRow>> {
 public:
  Markdown(const std::string& path, Existing existing) : path_(path), existing_(existing) {}

  void begin(const TaskPlan& plan) override {
    if (path_ != "-") prepare_output(path_, existing_);
    KeepingSink::begin(plan);
  }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& /*summary*/) override {
    for (std::size_t i = 0; i < rows->rows() && kept_[task].size() < kMostRows; ++i) {
      const RowFacts facts = rows->facts(i);
      if (facts.verdict != verdict::Verdict::pass && !facts.left_out) kept_[task].push_back(rows->note(i));
    }
  }

  void end(CompareReport& report) override {
    std::string text;
    if (report.diagnosis) text = "```text\n" + fenced(answer_text(*report.diagnosis)) + "```\n";
    std::size_t tasks_left = 0;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const std::string head = heading(report.tasks[i]);
      if (text.size() + head.size() + kTail > kMostBytes) {
        ++tasks_left;
        continue;
      }
      text += (text.empty() ? "" : "\n") + head;
      append_rows(kept_[i], report.tasks[i], text);
    }
    if (tasks_left > 0) text += fmt::format("\nand {} more comparisons\n", tasks_left);
    for (const std::string& line : report.one_sided) {
      if (text.size() + line.size() > kMostBytes) break;
      text += "\nnot compared: " + markdown_cell(line) + "\n";
    }
    write_text(path_, existing_, text, report);
  }

 private:
  static void append_rows(const std::vector<NotedRow>& rows, const TaskSummary& task, std::string& text) {
    const std::uint64_t all = task.errors + task.warnings;
    if (rows.empty()) return;
    text += "\n| Result | Name | Measure | Reason |\n|---|---|---|---|\n";
    std::uint64_t shown = 0;
    for (const NotedRow& row : rows) {
      const std::string line =
          fmt::format("| {} | {} | {} | {} |\n", verdict::verdict_name(row.verdict), markdown_cell(row.name),
                      markdown_cell(row.measure), markdown_cell(row.reason));
      if (text.size() + line.size() + kTail > kMostBytes) break;
      text += line;
      ++shown;
    }
    if (shown < all) text += fmt::format("\nand {} more rows\n", human_count(all - shown));
  }

  std::string path_;
  Existing existing_;
};

}  // namespace

std::string markdown_cell(std::string_view text) {
  static const std::map<char, const char*> kEntities = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'@', "&#64;"}};  // `@` would notify a user
  std::string out;
  for (const char c : display(text)) {
    constexpr std::string_view kMarks = "|\\`*_[]~#";
    if (const auto entity = kEntities.find(c); entity != kEntities.end()) {
      out += entity->second;
    } else {
      if (kMarks.find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::unique_ptr<Sink> markdown_sink(const std::string& path, Existing existing) {
  return std::make_unique<Markdown>(path, existing);
}

}  // namespace msprobe::compare
