// SPDX-License-Identifier: Apache-2.0
#include "support/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "support/crc32.hpp"
#include "support/utf8.hpp"

namespace msprobe {
namespace {

/// The characters other than ASCII that Python's repr escapes: those of the Unicode categories control,
/// format, blank, line and paragraph separator, surrogate and private use.
bool is_unprintable(char32_t c) {
  static constexpr CharacterRange kRanges[] = {
      {0x80, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},
      {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},     {0x1680, 0x1680},   {0x180E, 0x180E},
      {0x2000, 0x200F},   {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},   {0xD800, 0xF8FF},
      {0xFDD0, 0xFDEF},   {0xFEFF, 0xFEFF},   {0xFFF0, 0xFFFB},   {0xFFFE, 0xFFFF},   {0x110BD, 0x110BD},
      {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE00FF},
      {0xE01F0, 0x10FFFF}};
  for (const CharacterRange& range : kRanges) {
    if (c <= range.last) return c >= range.first;
  }
  return false;
}

void append_escape(std::string& out, char32_t c) {
  const auto code = static_cast<std::uint32_t>(c);
  if (code < 0x100) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", code);
  } else if (code < 0x10000) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", code);
  } else {
    fmt::format_to(std::back_inserter(out), "\\U{:08x}", code);
  }
}

/// The value of a number that from_chars found outside the range of double: zero or infinite, depending on
/// the place of its first significant digit. `text` has no sign.
double out_of_range_value(std::string_view text) {
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, e);
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return 0;
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  long long place = static_cast<long long>(point) - static_cast<long long>(first);
  if (e < text.size()) {
    std::string_view digits = text.substr(e + 1);
    const bool negative = digits.front() == '-';
    if (negative || digits.front() == '+') digits.remove_prefix(1);
    constexpr long long kFar = 1'000'000'000'000'000'000;
    long long exponent = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc() ||
        exponent > kFar) {
      exponent = kFar;
    }
    place += negative ? -exponent : exponent;
  }
  return place > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

}  // namespace

std::string short_number(double value, int digits) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}g}", value, digits);
}

void append_python_repr(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  std::array<char, 32> buffer;
  const double magnitude = std::fabs(value);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
  out.append(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  if (fixed && static_cast<double>(static_cast<std::int64_t>(magnitude)) == magnitude) out += ".0";
}

std::string python_repr(double value) {
  std::string out;
  append_python_repr(out, value);
  return out;
}

std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string out(1, quote);
  const auto is_plain = [&](char c) { return c >= 0x20 && c < 0x7F && c != quote && c != '\\'; };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t plain = i;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    if (plain != i) {
      out += text.substr(i, plain - i);
      i = plain;
      continue;
    }
    const Utf8 c = utf8_at(text, i);
    if (!c.valid) {
      append_escape(out, 0xDC00 + static_cast<unsigned char>(text[i]));  // Python's surrogateescape
    } else if (text[i] == quote || text[i] == '\\') {
      out += '\\';
      out += text[i];
    } else if (text[i] == '\n') {
      out += "\\n";
    } else if (text[i] == '\r') {
      out += "\\r";
    } else if (text[i] == '\t') {
      out += "\\t";
    } else if (c.code < 0x20 || c.code == 0x7F || (c.code >= 0x80 && is_unprintable(c.code))) {
      append_escape(out, c.code);
    } else {
      out += text.substr(i, c.length);
    }
    i += c.length;
  }
  out += quote;
  return out;
}

std::optional<double> parse_number(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  if (text.empty()) return std::nullopt;
  if (text.front() <= ' ' || text.back() <= ' ') {
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return std::nullopt;
    text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  }
  bool negative = false;
  if (text.front() == '+' || text.front() == '-') {
    negative = text.front() == '-';
    text.remove_prefix(1);
    if (text.empty() || text.front() == '+' || text.front() == '-') return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (text.find('(') != std::string_view::npos) return std::nullopt;  // Python does not accept nan(payload)
  if (error == std::errc::result_out_of_range) {
    value = out_of_range_value(text);
  }
  return negative ? -value : value;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find_first_of(separators);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

void append_csv_field(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string crc32_hex(std::string_view bytes) {
  return fmt::format("{:08x}", crc32(0, std::as_bytes(std::span(bytes))));
}

Utf8 utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::uint8_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size() - at) return {lead, 1, false};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return {lead, 1, false};
    code = (code << 6) | (byte(k) & 0x3FU);
  }
  // Rejects overlong forms, surrogates, and codes above U+10FFFF.
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {lead, 1, false};
  return {code, length, true};
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 c = utf8_at(text, i);
    out += c.valid ? text.substr(i, c.length) : std::string_view("\xEF\xBF\xBD");
    i += c.length;
  }
  return out;
}

bool is_invisible(char32_t c) {
  // Unicode's default ignorable characters, and the anchors of annotations.
  static constexpr std::array<CharacterRange, 17> kRanges = {{{0xAD, 0xAD},
                                                              {0x34F, 0x34F},
                                                              {0x61C, 0x61C},
                                                              {0x115F, 0x1160},
                                                              {0x17B4, 0x17B5},
                                                              {0x180B, 0x180F},
                                                              {0x200B, 0x200F},
                                                              {0x202A, 0x202E},
                                                              {0x2060, 0x206F},
                                                              {0x3164, 0x3164},
                                                              {0xFE00, 0xFE0F},
                                                              {0xFEFF, 0xFEFF},
                                                              {0xFFA0, 0xFFA0},
                                                              {0xFFF0, 0xFFFB},
                                                              {0x1BCA0, 0x1BCA3},
                                                              {0x1D173, 0x1D17A},
                                                              {0xE0000, 0xE0FFF}}};
  return c >= kRanges.front().first &&
         std::ranges::any_of(kRanges, [c](const CharacterRange& range) { return range.holds(c); });
}

std::string display(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 c = utf8_at(text, i);
    // C1 controls (U+0080..U+009F) drive some terminals as well.
    const bool control = c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0);
    const bool parts_lines = c.code == 0x2028 || c.code == 0x2029;
    if (!c.valid || control || parts_lines || is_invisible(c.code)) {
      append_escape(out, c.code);
    } else {
      out += text.substr(i, c.length);
    }
    i += c.length;
  }
  return out;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const Utf8 c = utf8_at(text, i);
    if (!c.valid) return false;
    i += c.length;
  }
  return true;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string_view nearest_of(std::span<const std::string_view> known, std::string_view typed,
                            std::size_t limit) {
  std::string_view best;
  for (const std::string_view one : known) {
    const std::size_t distance = edit_distance(typed, one);
    if (distance >= limit) continue;
    limit = distance;
    best = one;
  }
  return best;
}

std::string human_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string human_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

}  // namespace msprobe
