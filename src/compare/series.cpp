// SPDX-License-Identifier: Apache-2.0
#include "compare/series.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compare/sinks/code_place.hpp"
#include "compare/sinks/judgement.hpp"
#include "compare/sinks/markdown.hpp"
#include "compare/sinks/texts.hpp"
#include "diagnosis/sentences.hpp"
#include "report/terminal.hpp"
#include "report/writers.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::string_view kFailed = "failed";

/// The name of the run's folder, made unique among `taken`.
std::string folder_name(const std::string& run, std::set<std::string>& taken) {
  std::filesystem::path path = std::filesystem::path(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) path = path.parent_path();
  std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..") name = "run";
  std::string unique = name;
  for (int number = 2; !taken.insert(unique).second; ++number) unique = fmt::format("{}_{}", name, number);
  return unique;
}

void take_finding(const diagnosis::Finding& finding, SeriesRun& row) {
  row.answer = "culprit";
  row.text = diagnosis::headline_of(finding);
  row.confidence = diagnosis::name_of(finding.confidence);
  row.kind = diagnosis::name_of(finding.kind);
  row.entry = finding.entry;
  row.module = finding.module;
  row.step = finding.step;
  row.rank = finding.rank;
  row.place = finding.place;
  row.propagated = finding.propagated;
  if (const CodePlace code = code_place(finding.where); code.line) {
    row.file = code.line->file;
    row.line = code.line->number;
  }
}

void take_report(const CompareReport& report, SeriesRun& row) {
  for (const TaskSummary& task : report.tasks) {
    if (!task.failure.empty())
      row.failures.push_back(task.label.empty() ? task.failure : task.label + ": " + task.failure);
  }
  if (report.diagnosis && report.diagnosis->has_culprit()) {
    take_finding(report.diagnosis->culprit(), row);
  } else if (row.failures.size() == report.tasks.size()) {
    row.answer = kFailed;
    row.text = row.failures.front();
  } else {
    row.judged = is_judged(report) && row.failures.empty() && not_judged(report, "culprit").empty();
    const diagnosis::NoCulprit said = judgement_of(report);
    row.answer = said.title;
    row.text = said.why;
  }
}

SeriesRun compare_run(const std::string& run, const CompareOptions& options, const Gate& gate, bool strict,
                      Progress* progress) {
  SeriesRun row;
  row.run = run;
  try {
    const CompareReport report = compare(options, progress);
    const Coverage coverage = coverage_of(report, gate.level());
    const std::vector<std::string> lines = not_judged(report, gate.level());
    const bool found = found_something(report, gate.level());
    row.outcome = gate.outcome(found, coverage, lines);
    row.not_judged = gate.not_judged_line(found || !gate.is_set(), coverage, lines);
    if (is_failed(report, strict)) row.outcome = Outcome::failure;
    take_report(report, row);
  } catch (const Error& error) {
    row.outcome = Outcome::failure;
    row.answer = kFailed;
    row.text = error.what();
    row.failures.emplace_back(error.what());
  }
  return row;
}

/// Steps and ranks are not compared, because they may differ from night to night.
bool is_same_culprit(const SeriesRun& a, const SeriesRun& b) {
  return a.has_culprit() && a.kind == b.kind && a.entry == b.entry && a.place == b.place;
}

std::string where_of(const SeriesRun& row) {
  return row.file.empty() ? "" : row.file + ":" + row.line;
}

std::string rows_text(const SeriesRun& row) {
  return row.has_culprit() ? human_count(row.propagated) : "";
}

std::string since_text(const SeriesRun& row) {
  return row.has_culprit() ? fmt::format("run {}", row.since) : "";
}

class SeriesTable final : public report::Table {
 public:
  explicit SeriesTable(const std::vector<SeriesRun>& series) : series_(series) {}

  const std::vector<std::string>& columns() const override {
    static const std::vector<std::string> names = report::columns_of(
        "Number,Run,Answer,Text,Confidence,Kind,Entry,Module,Step,Rank,File,Line,Rows,"
        "Since,Failures,Results");
    return names;
  }
  std::size_t rows() const override { return series_.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    const SeriesRun& row = series_[index];
    scratch.clear();
    const auto number = [&](std::uint64_t value) -> report::Cell {
      if (!row.has_culprit()) return report::Text{};
      return static_cast<std::int64_t>(value);
    };
    const auto line = whole_number<std::int64_t>(row.line);
    std::string failures;
    for (const std::string& failure : row.failures) failures += (failures.empty() ? "" : "; ") + failure;
    cells = {static_cast<std::int64_t>(index + 1),
             report::Text{row.run},
             report::Text{row.answer},
             report::Text{row.text},
             report::Text{row.confidence},
             report::Text{row.kind},
             report::Text{row.entry},
             report::Text{row.module},
             report::Text{row.step},
             report::Text{row.rank},
             report::Text{row.file},
             line ? report::Cell(*line) : report::Cell(report::Text{row.line}),
             number(row.propagated),
             number(row.since),
             report::Text{scratch.keep(std::move(failures))},
             report::Text{row.results}};
  }
  report::Severity severity(std::size_t index) const override {
    const SeriesRun& row = series_[index];
    return row.answer == kFailed || row.confidence == "certain" ? report::Severity::error
           : row.judged                                         ? report::Severity::none
                                                                : report::Severity::warning;
  }

 private:
  const std::vector<SeriesRun>& series_;
};

std::string markdown_text(const std::vector<SeriesRun>& series) {
  std::string text =
      "| # | Run | Answer | Confidence | Where | Rows | Since |\n|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < series.size(); ++i) {
    const SeriesRun& row = series[i];
    text += fmt::format("| {} | {} | {}: {} | {} | {} | {} | {} |\n", i + 1, markdown_cell(row.run),
                        row.answer, markdown_cell(row.text), row.confidence, markdown_cell(where_of(row)),
                        rows_text(row), since_text(row));
  }
  return text;
}

}  // namespace

std::vector<SeriesRun> compare_series(const std::vector<std::string>& runs, const CompareOptions& options,
                                      const Gate& gate, bool strict, Progress* progress) {
  std::vector<SeriesRun> series;
  std::set<std::string> taken;
  for (const std::string& run : runs) {
    CompareOptions inner = options;
    inner.inputs.target = run;
    if (options.outputs.file.empty()) {
      inner.outputs.directory += "/" + folder_name(run, taken);
    } else {
      inner.outputs.formats.clear();
      inner.outputs.texts.clear();
    }
    SeriesRun row = compare_run(run, inner, gate, strict, progress);
    if (options.outputs.file.empty() && row.answer != kFailed) row.results = inner.outputs.directory;
    // A run that failed says nothing about the culprit.
    const auto before = std::find_if(series.rbegin(), series.rend(),
                                     [](const SeriesRun& one) { return one.answer != kFailed; });
    const bool goes_on = before != series.rend() && is_same_culprit(*before, row);
    row.since = goes_on ? before->since : series.size() + 1;
    series.push_back(std::move(row));
  }
  return series;
}

std::string render_series(const std::vector<SeriesRun>& series, const Outputs& outputs,
                          const Screen& screen) {
  std::vector<std::vector<std::string>> rows;
  report::TerminalStyle style{.width = screen.width, .indent = 0, .color = screen.color};
  const SeriesTable table(series);
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const SeriesRun& row = series[i];
    const std::string answer = row.answer + (row.has_culprit() ? ", " + row.confidence : "");
    rows.push_back({std::to_string(i + 1), row.run, answer, rows_text(row), since_text(row)});
    style.severities.push_back(table.severity(i));
    // Shows each culprit once. An error message says what failed.
    if (row.judged || row.answer == kFailed || (row.has_culprit() && row.since <= i)) continue;
    const std::string where = where_of(row);
    sentences.push_back(fmt::format("{} {}: {}{}{}", row.has_culprit() ? "from run" : "run", i + 1, row.text,
                                    where.empty() ? "" : ", at ", where));
  }
  std::string text = report::render_columns({"#", "Run", "Answer", "Rows", "Since"}, rows, style);
  for (const std::string& sentence : sentences) {
    for (const std::string& line : report::wrap(display(sentence), screen.width)) text += line + "\n";
  }
  const auto first = std::ranges::find_if(series, &SeriesRun::has_culprit);
  if (first != series.end()) {
    text += fmt::format("the first run with a culprit: {}, {}\n", first - series.begin() + 1,
                        display(first->run));
  }
  if (!outputs.file.empty()) {
    text += "written: " + display(outputs.file) + "\n";
  } else if (!std::ranges::all_of(series, &std::string::empty, &SeriesRun::results)) {
    text += "written: " + display(outputs.directory) + ", a folder for each run\n";
  }
  return text;
}

void check_series_format(const Outputs& outputs) {
  if (outputs.file.empty()) return;
  if (!outputs.texts.empty() && outputs.texts.front() != kMarkdown)
    throw UsageError("a table of runs is csv, xlsx, json, jsonl or md",
                     "leave out --output-file, and give a folder with -o, for one result a run");
  if (outputs.file != "-") prepare_output(outputs.file, outputs.existing);
}

void write_series(const std::vector<SeriesRun>& series, const Outputs& outputs) {
  const std::string& path = outputs.file;
  if (outputs.texts.empty()) {
    const SeriesTable table(series);
    if (path == "-") {
      report::write_stdout(table, outputs.formats.front());
    } else {
      report::WriteOptions write;
      write.existing = outputs.existing;
      report::write_file(table, outputs.formats.front(), path, write);
    }
    return;
  }
  write_text(path, outputs.existing, markdown_text(series));
}

}  // namespace msprobe::compare
