// SPDX-License-Identifier: Apache-2.0
// Short results for people: aligned columns that fit the terminal, colour where it is wanted. All text is
// made safe to show (support/text.hpp, display), so callers pass names as they are.
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

/// "1,234 errors"; in the colour of the severity unless it is none at all.
std::string count_text(std::uint64_t count, std::string_view what, Severity severity, bool color);

/// No line that is not hostile is longer.
inline constexpr std::size_t kWholeLine = 4096;

/// Is it a terminal that somebody looks at?
bool is_terminal(int descriptor);
/// From now on nothing is.
void take_terminals_away();

/// Columns of the terminal behind `descriptor`; 100 if it does not tell, kWholeLine if it is none: a file or
/// a pipe gets whole names.
std::size_t terminal_width(int descriptor);

/// Columns that safe UTF-8 text takes on a terminal: two for East Asian wide characters and emoji, none for
/// combining marks.
std::size_t display_width(std::string_view text);

/// The text, safe to show, cut in the middle to at most `width` columns: `Module.encoder...input.0`.
std::string elide_middle(std::string_view text, std::size_t width);

/// Safe text in lines of at most `width` columns, broken at blanks; a word that is longer has a line of its
/// own.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// Does this terminal show links (OSC 8)? Those that are known to, and FORCE_HYPERLINK (set, not 0) says yes.
bool shows_links(const std::function<const char*(const char*)>& environment);

/// The path as a URI; of one that is not absolute, a relative one.
std::string file_address(std::string_view path);

/// The text as a link to a file of this machine, where it is there.
std::string link_to_file(const std::string& text, const std::string& path, std::string_view line);

struct TerminalStyle {
  std::size_t width = 100;  // of the whole line
  std::size_t indent = 2;   // blanks before each line
  bool color = false;
  bool sentences = false;                 // in the last column, which may run on
  std::vector<Severity> severities = {};  // one a row, or none
};

/// A table of lines, two blanks between columns. Columns of numbers stand to the right. An empty header gives
/// no header line. Nothing shorter than kWholeLine is cut: where a line would be longer than `width`, each
/// row gets as many lines as it needs, with the names of the columns in them.
std::string render_columns(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows, const TerminalStyle& style);

}  // namespace msprobe::report
