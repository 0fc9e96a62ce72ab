// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_text.hpp"

#include <charconv>
#include <cstdint>

#include "support/utf8.hpp"

namespace msprobe::formats {
namespace {

std::optional<std::uint32_t> digits(std::string_view text, std::size_t at, std::size_t count, int base) {
  if (at > text.size() || count > text.size() - at) return {};
  std::uint32_t value = 0;
  const char* end = text.data() + at + count;
  const auto result = std::from_chars(text.data() + at, end, value, base);
  if (result.ec != std::errc{} || result.ptr != end) return {};
  return value;
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

}  // namespace

std::optional<std::string> decode_quoted(std::string_view line) {
  if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"'))
    return {};
  line = line.substr(1, line.size() - 2);
  constexpr std::string_view kEscapes = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    if (++i == line.size()) return {};
    if (const std::size_t known = kEscapes.find(line[i]); known != std::string_view::npos) {
      out += kMeanings[known];
    } else if (line[i] == 'x') {
      const auto value = digits(line, i + 1, 2, 16);
      if (!value) return {};
      out += static_cast<char>(*value);
      i += 2;
    } else if (is_octal(line[i])) {
      std::size_t count = 1;
      while (count < 3 && i + count < line.size() && is_octal(line[i + count])) ++count;
      out += static_cast<char>(digits(line, i, count, 8).value_or(0));
      i += count - 1;
    } else {
      return {};
    }
  }
  return out;
}

std::optional<std::string> decode_raw_unicode(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    if (line[i] != '\\' || (next != 'u' && next != 'U')) {
      append_utf8(out, static_cast<std::uint8_t>(line[i]));
      continue;
    }
    const std::size_t count = next == 'u' ? 4 : 8;
    const auto code = digits(line, i + 2, count, 16);
    if (!code || *code > 0x10ffff) return {};
    append_utf8(out, *code);
    i += 1 + count;
  }
  return out;
}

}  // namespace msprobe::formats
