// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_text.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "support/little_endian.hpp"

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

// Python refuses to read longer decimal numbers.
constexpr std::size_t kMostDigits = 4300;

struct Digits {
  bool negative = false;
  std::uint32_t base = 10;
  std::string text;  // the digits alone
};

// Splits the text of a number as Python does: its C code ends the text at a zero byte.
std::optional<Digits> split_number(std::string_view line, bool with_prefix) {
  line = line.substr(0, line.find('\0'));
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const std::size_t first = line.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  line = line.substr(first, line.find_last_not_of(kBlanks) - first + 1);
  Digits found;
  if (line.front() == '+' || line.front() == '-') {
    found.negative = line.front() == '-';
    line.remove_prefix(1);
  }
  bool after_digit = false;
  if (with_prefix && line.size() > 1 && line[0] == '0') {
    const char kind = static_cast<char>(line[1] | 0x20);
    found.base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    if (found.base != 10) {
      line.remove_prefix(2);
      after_digit = true;  // an underscore may follow the prefix
    }
  }
  for (const char c : line) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const char lower = static_cast<char>(c | 0x20);
    const std::uint32_t value = c >= '0' && c <= '9'           ? static_cast<std::uint32_t>(c - '0')
                                : lower >= 'a' && lower <= 'f' ? static_cast<std::uint32_t>(lower - 'a') + 10
                                                               : 16;
    if (value >= found.base) return {};
    found.text += c;
    after_digit = true;
  }
  if (!after_digit || found.text.empty() || found.text.size() > kMostDigits) return {};
  return found;
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
      // The second of two backslashes does not begin an escape.
      if (line[i] == '\\' && next == '\\') append_utf8(out, static_cast<std::uint8_t>(line[++i]));
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

std::optional<std::uint64_t> decode_key(std::string_view line) {
  if (line.size() > kLongestKey) return {};
  const auto number = split_number(line, false);
  if (!number) return {};
  std::uint64_t value = 0;
  const char* end = number->text.data() + number->text.size();
  const auto result = std::from_chars(number->text.data(), end, value);
  if (result.ec != std::errc{} || (number->negative && value != 0)) return {};
  return value;
}

std::optional<std::string> decode_integer(std::string_view line) {
  const auto number = split_number(line, true);
  if (!number) return {};
  // The number of digits that fit into 32 bits.
  constexpr std::size_t kDigits = 7;
  std::vector<std::uint32_t> limbs;
  for (std::size_t at = 0; at < number->text.size(); at += kDigits) {
    const std::size_t count = std::min(kDigits, number->text.size() - at);
    std::uint64_t carry = digits(number->text, at, count, static_cast<int>(number->base)).value_or(0);
    std::uint64_t factor = 1;
    for (std::size_t i = 0; i < count; ++i) factor *= number->base;
    for (std::uint32_t& limb : limbs) {
      carry += limb * factor;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs.push_back(static_cast<std::uint32_t>(carry));
  }
  std::string bytes;
  for (const std::uint32_t limb : limbs) append_le(bytes, limb);
  bytes += '\0';  // the sign
  if (number->negative) {
    bool carry = true;
    for (char& byte : bytes) {
      const auto inverted = static_cast<std::uint8_t>(~static_cast<std::uint8_t>(byte));
      byte = static_cast<char>(inverted + (carry ? 1 : 0));
      carry = carry && inverted == 0xff;
    }
  }
  // Removes bytes while the remaining ones keep the sign.
  const auto sign = [](char byte) { return (static_cast<std::uint8_t>(byte) & 0x80U) != 0; };
  while (bytes.size() > 1 && bytes.back() == (sign(bytes.back()) ? '\xff' : '\0') &&
         sign(bytes[bytes.size() - 2]) == sign(bytes.back())) {
    bytes.pop_back();
  }
  return bytes;
}

bool is_of_python_name(char c) {
  return c == '.' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace msprobe::formats
