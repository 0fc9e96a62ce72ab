// SPDX-License-Identifier: Apache-2.0
// Short results for people: aligned columns that fit the terminal, with colour if the user wants it. These
// functions make all text safe to show (support/text.hpp, display), so callers pass names as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/severity.hpp"

namespace msprobe::report {

enum class Color : std::uint8_t { none, red, yellow, green, cyan, bold, dim };

/// The colour of a verdict: errors red, warnings yellow.
Color color_of(Severity severity);

/// The text, safe to show, in colour if `enabled`.
std::string paint(std::string_view text, Color color, bool enabled);

/// "1,234 errors", in the colour of the severity unless the count is zero.
std::string count_text(std::uint64_t count, std::string_view what, Severity severity, bool color);

/// A limit that only a hostile line exceeds.
inline constexpr std::size_t kWholeLine = 4096;

/// Is the descriptor a terminal that a person sees?
bool is_terminal(int descriptor);
/// From now on no descriptor counts as a terminal.
void take_terminals_away();

/// The width in columns of the terminal at `descriptor`; 100 if the terminal does not report it. kWholeLine
/// if it is not a terminal: a file or a pipe gets whole names.
std::size_t terminal_width(int descriptor);

/// The number of columns that safe UTF-8 text takes on a terminal: two for East Asian wide characters and
/// emoji, zero for combining marks.
std::size_t display_width(std::string_view text);

/// The text, safe to show, cut in the middle to at most `width` columns: `Module.encoder...input.0`.
std::string elide_middle(std::string_view text, std::size_t width);

/// Splits safe text into lines of at most `width` columns at blanks; a longer word gets a line for itself.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// Does this terminal show links (OSC 8)? True for terminals known to, and if FORCE_HYPERLINK is set and not
/// 0.
bool shows_links(const std::function<const char*(const char*)>& environment);

/// The path as a URI; a path that is not absolute gives a relative URI.
std::string file_address(std::string_view path);

/// The text as a link to a file of this machine, if the file exists.
std::string link_to_file(const std::string& text, const std::string& path, std::string_view line);

struct TerminalStyle {
  std::size_t width = 100;  // of the whole line
  std::size_t indent = 2;   // blanks before each line
  bool color = false;
  bool sentences = false;                 // the last column has sentences, which may run on
  std::vector<Severity> severities = {};  // one per row, or empty
};

/// A table with two blanks between columns. Columns of numbers are right-aligned. An empty header gives no
/// header line. Cells shorter than kWholeLine are never cut: if a line would be longer than `width`, each row
/// gets as many lines as it needs, with the names of the columns in them.
std::string render_columns(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows, const TerminalStyle& style);

}  // namespace msprobe::report
