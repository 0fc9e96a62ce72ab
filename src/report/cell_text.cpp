// SPDX-License-Identifier: Apache-2.0
#include "report/cell_text.hpp"

#include <array>
#include <cstddef>

#include "report/table.hpp"
#include "report/writers.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::report {
namespace {

constexpr std::array<std::uint8_t, 256> make_traits() {
  std::array<std::uint8_t, 256> traits{};
  for (std::size_t c = 0; c < 256; ++c) {
    const bool blank = c == '\t' || c == '\n' || c == '\r';
    if (c < 0x20 || c == 0x7F) traits[c] = TextTraits::kXml | (blank ? 0 : TextTraits::kControl);
    if (c >= 0x80) traits[c] = TextTraits::kHigh;
  }
  for (const char c : {'&', '<', '>'}) traits[static_cast<unsigned char>(c)] |= TextTraits::kXml;
  // Some spreadsheets also split fields at tabs, unless the fields are quoted.
  for (const char c : {',', '"', '\n', '\r', '\t'}) traits[static_cast<unsigned char>(c)] |= TextTraits::kCsv;
  traits[';'] |= TextTraits::kSemicolon;
  traits['_'] |= TextTraits::kUnderscore;
  return traits;
}
constexpr std::array<std::uint8_t, 256> kTraits = make_traits();

/// Is the character a sign that begins a formula, in ASCII or full width?
bool is_formula_sign(char32_t c) {
  switch (c) {
    case U'=':
    case U'+':
    case U'-':
    case U'@':
    case U'%':
    case U'\uFF1D':
    case U'\uFF0B':
    case U'\uFF0D':
    case U'\uFF20':
    case U'\uFF05':
      return true;
    default:
      return false;
  }
}

/// Does a spreadsheet ignore the character before a sign, or drop it when it reads a file? This holds for
/// blanks, control characters and characters without width.
bool is_passed_over(char32_t c) {
  return c <= U' ' || (c >= 0x7F && c <= 0xA0) || c == 0x1680 || c == 0x3000 || c == 0x205F ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || is_invisible(c);
}

bool starts_formula(std::string_view text) {
  while (!text.empty()) {
    const Utf8 c = utf8_at(text, 0);
    if (!is_passed_over(c.code)) return is_formula_sign(c.code);
    text.remove_prefix(c.length);
  }
  return false;
}

/// Calls `visit(part)` for each part between semicolons, until it returns false.
template <class Visit>
void each_part(std::string_view text, Visit visit) {
  while (true) {
    const std::size_t end = text.find(';');
    if (!visit(text.substr(0, end)) || end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void append_spelled(std::string& out, const Spelled& number) {
  if (number.kind == Spelled::NumberForm::integer) {
    append_json_integer(out, number.integer);
    return;
  }
  append_python_repr(out, number.value);
  if (number.kind == Spelled::NumberForm::percent) out += '%';
}

bool looks_like_formula(std::string_view text) {
  bool formula = false;
  bool numbers = true;
  each_part(text, [&](std::string_view part) {
    formula = formula || starts_formula(part);
    numbers = numbers && parse_number(part).has_value();
    return !formula || numbers;  // stop when both questions are answered
  });
  return formula && !numbers;
}

std::vector<std::string> columns_of(std::string_view header) {
  const std::vector<std::string_view> names = split(header, ",");
  return {names.begin(), names.end()};
}

std::string plain_text(const Cell& cell) {
  struct Print {
    std::string operator()(const Text& text) const { return std::string(text.value); }
    std::string operator()(const Spelled& number) const {
      std::string text;
      append_spelled(text, number);
      return text;
    }
    std::string operator()(double value) const { return python_repr(value); }
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(bool value) const { return value ? "True" : "False"; }
  };
  return std::visit(Print{}, cell);
}

TextTraits traits_of(std::string_view text) {
  std::uint8_t bits = 0;
  for (const char c : text) bits |= kTraits[static_cast<unsigned char>(c)];
  return {bits};
}

bool is_safe_text(std::string_view text, TextTraits traits) {
  if (traits.has(TextTraits::kHigh | TextTraits::kSemicolon)) return false;
  // Fast path, since most texts begin with a letter.
  return text.empty() || (text.front() >= 'A' && text.front() <= 'Z') || !starts_formula(text) ||
         parse_number(text).has_value();
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8 c = utf8_at(text, at);
    const std::string_view bytes = text.substr(at, c.length);
    const bool blank = c.code == U'\t' || c.code == U'\n' || c.code == U'\r';
    const bool control = (c.code < 0x20 && !blank) || (c.code >= 0x7F && c.code < 0xA0);
    out += control ? display(bytes) : std::string(bytes);
    at += c.length;
  }
  return out;
}

std::string safe_text(std::string_view text) {
  std::string valid = valid_utf8(text);
  if (!looks_like_formula(valid)) return valid;
  std::string out;
  out.reserve(valid.size() + 4);
  each_part(valid, [&](std::string_view part) {
    if (part.data() != valid.data()) out += ';';
    if (starts_formula(part)) out += '\'';
    out += part;
    return true;
  });
  return out;
}

}  // namespace msprobe::report
