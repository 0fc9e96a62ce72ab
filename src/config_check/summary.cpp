// SPDX-License-Identifier: Apache-2.0
#include "config_check/summary.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using report::Severity;

constexpr std::size_t kShownRows = 5;  // per section

std::string shown(const report::Cell& cell) {
  const double* const real = std::get_if<double>(&cell);
  return real != nullptr ? fmt::format("{:.4g}", *real) : report::plain_text(cell);
}

std::string counts(const SheetTable& table) {
  std::string out;
  const auto part = [&](std::size_t count, const char* what) {
    if (count == 0) return;
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}{}", human_count(count), what, count == 1 ? "" : "s");
  };
  part(table.errors(), "error");
  part(table.warnings(), "warning");
  return out;
}

/// The last line of a stack shows the place of the call.
std::string last_line(const std::string& text) {
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : "... " + text.substr(line + 1);
}

/// The first rows with errors; if there are no errors, the first rows with warnings.
std::string worst_rows(const SheetTable& table, const std::vector<int>& columns, bool color) {
  const Severity wanted = table.worst();
  std::vector<std::string> header;
  for (const int column : columns) header.push_back(table.columns()[static_cast<std::size_t>(column)]);
  std::vector<std::vector<std::string>> lines;
  report::TerminalStyle style;
  style.width = report::terminal_width(STDERR_FILENO);
  style.indent = 4;
  style.color = color;
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (std::size_t i = 0; i < table.rows() && lines.size() < kShownRows; ++i) {
    if (table.severity(i) != wanted) continue;
    table.row(i, cells, scratch);
    std::vector<std::string>& line = lines.emplace_back();
    for (const int column : columns)
      line.push_back(last_line(shown(cells[static_cast<std::size_t>(column)])));
    style.severities.push_back(wanted);
  }
  std::string out = report::render_columns(header, lines, style);
  const std::size_t left = (wanted == Severity::error ? table.errors() : table.warnings()) - lines.size();
  if (left != 0) out += fmt::format("    and {} more\n", human_count(left));
  return out;
}

std::string written(const std::vector<std::string>& files) {
  std::string out;
  for (const std::string& file : files) out += "  written: " + display(file) + "\n";
  return out;
}

}  // namespace

std::string render_packs(const PackComparison& comparison, const ComparePacksOptions& options, bool color) {
  std::string out = fmt::format("{} against {}\n", display(options.cmp), display(options.bench));
  for (const SheetSection& section : comparison.sections) {
    out += fmt::format("  {:<16}{}", section.name,
                       report::paint(name_of(section.status), report::color_of(section.severity()), color));
    if (section.table) {
      if (const std::string text = counts(*section.table); !text.empty()) out += ": " + text;
    } else if (section.status == SectionStatus::missing) {
      out += ": " + section.reasons.front();
    }
    out += '\n';
    if (section.table && section.table->status() != SectionStatus::pass)
      out += worst_rows(*section.table, section.shown, color);
  }
  return out + written(comparison.files);
}

std::string render_verl(const VerlResult& result, bool color) {
  const std::size_t different = result.table->errors();
  std::string out = result.headline + "\n";
  out += fmt::format("  {} parameters: {} equal, ", human_count(result.compared),
                     human_count(result.compared - different));
  out += report::count_text(different, "different", Severity::error, color) + "\n";
  if (different != 0) out += worst_rows(*result.table, {0, 1, 2}, color);
  return out + written(result.files);
}

std::string render_collection(const CollectResult& result) {
  std::string out =
      fmt::format("{} variables, {} packages", human_count(result.variables), human_count(result.packages));
  if (!result.interpreter.empty()) out += " of " + display(result.interpreter);
  out += fmt::format(", {} hyper-parameters\n", human_count(result.parameters));
  return out + written({result.output});
}

}  // namespace msprobe::config_check
