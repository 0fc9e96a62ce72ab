// SPDX-License-Identifier: Apache-2.0
#include "report/worst.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "report/terminal.hpp"

namespace msprobe::report {

std::string render_worst(std::vector<WorstLine> lines, std::string_view by, bool color) {
  TerminalStyle style;
  style.width = terminal_width(STDERR_FILENO);
  style.indent = 4;
  style.color = color;
  style.sentences = true;
  std::vector<std::vector<std::string>> rows;
  for (WorstLine& line : lines) {
    rows.push_back(std::move(line.cells));
    style.severities.push_back(line.severity);
  }
  const std::string title = fmt::format("  worst {}{}{}:\n", rows.size(), by.empty() ? "" : " by ", by);
  return title + render_columns({}, rows, style);
}

}  // namespace msprobe::report
