// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>

#include "support/text.hpp"
#include "support/utf8.hpp"

namespace msprobe::report {
namespace {

constexpr std::size_t kDefaultWidth = 100;
constexpr std::size_t kGap = 2;
constexpr std::string_view kEllipsis = "...";

bool g_no_terminals = false;

template <std::size_t N>
bool in_ranges(const CharacterRange (&ranges)[N], char32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const CharacterRange& range) { return range.holds(c); });
}

std::size_t character_width(char32_t c) {
  static constexpr CharacterRange kCombining[] = {{0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},
                                                  {0x610, 0x61A},   {0x64B, 0x65F},   {0x1AB0, 0x1AFF},
                                                  {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF},
                                                  {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
  static constexpr CharacterRange kWide[] = {
      {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xA960, 0xA97C}, {0xAC00, 0xD7A3},
      {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},  {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
      {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  if (c < 0x300) return 1;
  if (in_ranges(kCombining, c)) return 0;
  return in_ranges(kWide, c) ? 2 : 1;
}

/// The longest suffix of `text` that takes at most `width` columns.
std::string_view tail_of(std::string_view text, std::size_t width) {
  std::size_t skip = display_width(text);
  std::size_t at = 0;
  while (skip > width || (at < text.size() && character_width(utf8_at(text, at).code) == 0)) {
    const Utf8 c = utf8_at(text, at);
    skip -= character_width(c.code);
    at += c.length;
  }
  return text.substr(at);
}

std::string_view head_of(std::string_view text, std::size_t width) {
  std::size_t used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8 c = utf8_at(text, at);
    used += character_width(c.code);
    if (used > width) break;
    at += c.length;
  }
  return text.substr(0, at);
}

/// Like elide_middle(), for text that is already safe to show.
std::string elide_safe(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= kEllipsis.size()) return std::string(head_of(text, width));
  // The end of a name (input.0, output.3) says more than its middle.
  const std::size_t room = width - kEllipsis.size();
  const std::string_view head = head_of(text, room / 2);
  return std::string(head) + std::string(kEllipsis) + std::string(tail_of(text, room - display_width(head)));
}

/// Does the text look like a number in a table, perhaps with thousands separators or a percent sign?
bool is_numeric(std::string text) {
  std::erase(text, ',');
  if (!text.empty() && text.back() == '%') text.pop_back();
  return parse_number(text).has_value();
}

using Cells = std::vector<std::vector<std::string>>;  // safe to show; all rows have the same length

/// Do the columns fit into a line? A column of sentences may run on, but needs at least half of a line. A
/// single column gains nothing from another layout.
bool fits(const std::vector<std::size_t>& widths, const TerminalStyle& style) {
  if (widths.size() == 1) return true;
  const std::size_t last = style.sentences ? std::min(widths.back(), style.width / 2) : widths.back();
  const std::size_t ahead = std::accumulate(widths.begin(), widths.end() - 1, std::size_t{0});
  return style.indent + ahead + (widths.size() - 1) * kGap + last <= style.width;
}

std::string table_line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths,
                       const std::vector<bool>& right, std::size_t indent) {
  std::string line(indent, ' ');
  for (std::size_t k = 0; k < row.size(); ++k) {
    const std::string padding(widths[k] - display_width(row[k]), ' ');
    line += right[k] ? padding + row[k] : row[k] + padding;
    if (k + 1 < row.size()) line.append(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// The lines of a row that is too long for one line: as few as possible, without cutting a cell. Each cell
/// after the first one has the name of its column before it.
std::vector<std::string> record_lines(const std::vector<std::string>& row,
                                      const std::vector<std::string>& names, const TerminalStyle& style) {
  std::vector<std::string> lines;
  std::size_t used = 0;
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (row[k].empty()) continue;
    const bool named = k > 0 && k < names.size() && !names[k].empty();
    const std::string text = named ? names[k] + " " + row[k] : row[k];
    const std::size_t width = display_width(text);
    const bool own_line = style.sentences && k + 1 == row.size();
    if (lines.empty() || own_line || used + kGap + width > style.width) {
      const std::size_t indent = style.indent + (lines.empty() ? 0 : 2 * kGap);
      lines.push_back(std::string(indent, ' ') + text);
      used = indent + width;
    } else {
      lines.back() += std::string(kGap, ' ') + text;
      used += kGap + width;
    }
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string_view escape_of(Color color) {
  constexpr std::string_view kNames[] = {"",         "\x1b[31m", "\x1b[33m", "\x1b[32m",
                                         "\x1b[36m", "\x1b[1m",  "\x1b[2m"};
  return kNames[static_cast<std::size_t>(color)];
}

std::string paint_safe(std::string text, Color color, bool enabled) {
  if (!enabled || color == Color::none || text.empty()) return text;
  return std::string(escape_of(color)) + text + "\x1b[0m";
}

}  // namespace

Color color_of(Severity severity) {
  constexpr Color kColors[] = {Color::none, Color::yellow, Color::red};
  return kColors[static_cast<std::size_t>(severity)];
}

std::string paint(std::string_view text, Color color, bool enabled) {
  return paint_safe(display(text), color, enabled);
}

std::string count_text(std::uint64_t count, std::string_view what, Severity severity, bool color) {
  return paint(human_count(count) + " " + std::string(what), count == 0 ? Color::none : color_of(severity),
               color);
}

void take_terminals_away() {
  g_no_terminals = true;
}

bool is_terminal(int descriptor) {
  return !g_no_terminals && ::isatty(descriptor) == 1;
}

std::size_t terminal_width(int descriptor) {
  winsize size{};
  if (!is_terminal(descriptor)) return kWholeLine;
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 c = utf8_at(text, i);
    width += character_width(c.code);
    i += c.length;
  }
  return width;
}

std::string elide_middle(std::string_view text, std::size_t width) {
  return elide_safe(display(text), width);
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::size_t used = 0;
  for (const std::string_view word : split(text, " ")) {
    const std::size_t taken = display_width(word);
    if (lines.empty() || (used > 0 && used + 1 + taken > width)) {
      lines.emplace_back(word);
      used = taken;
    } else {
      lines.back() += ' ';
      lines.back() += word;
      used += 1 + taken;
    }
  }
  return lines;
}

bool shows_links(const std::function<const char*(const char*)>& environment) {
  const auto value = [&](const char* name) -> std::string_view {
    const char* const found = environment(name);
    return found == nullptr ? "" : found;
  };
  if (const std::string_view forced = value("FORCE_HYPERLINK"); !forced.empty()) return forced != "0";
  const std::string_view program = value("TERM_PROGRAM");
  const std::string_view term = value("TERM");
  // VTE shows links since version 0.50.
  if (const auto vte = parse_number(value("VTE_VERSION")); vte && *vte >= 5000) return true;
  for (const std::string_view known : {"iTerm.app", "WezTerm", "vscode", "ghostty"})
    if (program == known) return true;
  for (const std::string_view known : {"xterm-kitty", "alacritty", "foot", "xterm-ghostty"})
    if (term == known) return true;
  return !value("KONSOLE_VERSION").empty() || !value("WT_SESSION").empty();
}

std::string file_address(std::string_view path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~";
  std::string address = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      address += c;
    } else {
      address += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return address;
}

std::string link_to_file(const std::string& text, const std::string& path, std::string_view line) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (error || !std::filesystem::is_regular_file(whole, error)) return text;
  return fmt::format("\x1b]8;;{}#L{}\x1b\\{}\x1b]8;;\x1b\\", file_address(whole.string()), line, text);
}

std::string render_columns(const std::vector<std::string>& header,
                           const std::vector<std::vector<std::string>>& rows, const TerminalStyle& style) {
  std::size_t columns = header.size();
  for (const auto& row : rows) columns = std::max(columns, row.size());
  if (columns == 0) return {};
  Cells cells;  // the header is the first row
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, !rows.empty());
  const auto add = [&](const std::vector<std::string>& row, bool is_header) {
    auto& safe = cells.emplace_back(columns);
    for (std::size_t k = 0; k < columns; ++k) {
      if (k < row.size()) safe[k] = elide_middle(row[k], kWholeLine);
      widths[k] = std::max(widths[k], display_width(safe[k]));
      if (!is_header && !safe[k].empty() && safe[k] != "N/A" && !is_numeric(safe[k])) right[k] = false;
    }
  };
  if (!header.empty()) add(header, true);
  for (const auto& row : rows) add(row, false);

  std::string out;
  const auto tell = [&](std::string line, Color color) {
    out += paint_safe(std::move(line), color, style.color);
    out += '\n';
  };
  const bool as_table = fits(widths, style);
  const std::size_t first_row = header.empty() ? 0 : 1;
  if (first_row == 1 && (as_table || rows.empty()))
    tell(table_line(cells[0], widths, right, style.indent), Color::bold);
  const std::vector<std::string> names = header.empty() ? std::vector<std::string>() : cells[0];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Color color = i < style.severities.size() ? color_of(style.severities[i]) : Color::none;
    const std::vector<std::string>& row = cells[first_row + i];
    if (as_table) {
      tell(table_line(row, widths, right, style.indent), color);
    } else {
      for (std::string& line : record_lines(row, names, style)) tell(std::move(line), color);
    }
  }
  return out;
}

}  // namespace msprobe::report
