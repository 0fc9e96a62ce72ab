// SPDX-License-Identifier: Apache-2.0
#include "support/json_writer.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "support/text.hpp"

namespace msprobe {
namespace {

void append_unit(std::string& out, std::uint32_t unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/// The number of characters that need no escape, up to the first that does.
std::size_t plain_length(std::string_view text) {
  std::size_t length = 0;
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHigh = 0x8080808080808080;
    for (; text.size() - length >= 8; length += 8) {
      std::uint64_t v = 0;
      std::memcpy(&v, text.data() + length, 8);
      const std::uint64_t quote = v ^ (kOnes * '"');
      const std::uint64_t slash = v ^ (kOnes * '\\');
      // A wrong mark is possible only after a right one, so the first mark is right.
      const std::uint64_t marks =
          (((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash) | (v - kOnes * 0x20) | v | (v + kOnes)) &
          kHigh;
      if (marks != 0) return length + std::countr_zero(marks) / 8;
    }
  }
  while (length < text.size() && is_plain(text[length])) ++length;
  return length;
}

/// The code of a lone surrogate that an escape left in the text, or 0.
std::uint32_t surrogate_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  if (text.size() - at < 3 || byte(0) != 0xED || byte(1) < 0xA0 || byte(1) > 0xBF || (byte(2) & 0xC0) != 0x80)
    return 0;
  return 0xD000U | ((byte(1) & 0x3FU) << 6) | (byte(2) & 0x3FU);
}

/// Appends the character at `at` in ASCII and returns its length.
std::size_t append_escaped(std::string& out, std::string_view text, std::size_t at) {
  if (const std::uint32_t surrogate = surrogate_at(text, at); surrogate != 0) {
    append_unit(out, surrogate);
    return 3;
  }
  const Utf8 character = utf8_at(text, at);
  const auto code = static_cast<std::uint32_t>(character.code);
  if (!character.valid) {
    append_unit(out, 0xDC00U + code);
  } else if (code < 0x10000) {
    append_unit(out, code);
  } else {
    append_unit(out, 0xD800U + ((code - 0x10000) >> 10));
    append_unit(out, 0xDC00U + ((code - 0x10000) & 0x3FFU));
  }
  return character.length;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text, JsonText style) {
  constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t plain = plain_length(text.substr(i)); plain > 0) {
      out.append(text, i, plain);
      i += plain;
      continue;
    }
    const char c = text[i];
    if (const std::size_t which = kSpecial.find(c); which != std::string_view::npos) {
      out += '\\';
      out += kLetters[which];
      ++i;
    } else if (style == JsonText::ascii || static_cast<unsigned char>(c) < 0x80) {
      i += append_escaped(out, text, i);
    } else {
      const Utf8 character = utf8_at(text, i);
      out += character.valid ? text.substr(i, character.length) : "\xEF\xBF\xBD";
      i += character.length;
    }
  }
  out += '"';
}

void append_json_list(std::string& out, const std::vector<std::string>& texts) {
  out += '[';
  for (const std::string& text : texts) {
    if (&text != &texts.front()) out += ", ";
    append_json_string(out, valid_utf8(text));
  }
  out += ']';
}

void append_json_real(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    append_python_repr(out, value);
  }
}

void append_json_line(std::string& out, int level, int indent) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(level) * static_cast<std::size_t>(indent), ' ');
}

void JsonWriter::element() {
  started_ = true;
  if (frames_.empty()) return;
  OpenContainer& frame = frames_.back();
  if (frame.count++ > 0) text_ += style_.indent == 0 && !style_.compact ? ", " : ",";
  append_json_line(text_, level(), style_.indent);
}

void JsonWriter::key(std::string_view name) {
  element();
  append_json_string(text_, name, style_.text);
  text_ += style_.compact ? ":" : ": ";
}

std::string& JsonWriter::place() {
  if (!started_) element();
  started_ = false;
  return text_;
}

void JsonWriter::open(bool object) {
  place() += object ? '{' : '[';
  frames_.push_back({object, 0});
}

void JsonWriter::close() {
  const OpenContainer frame = frames_.back();
  frames_.pop_back();
  started_ = false;
  // An empty container stays on its line.
  if (frame.count > 0) append_json_line(text_, level(), style_.indent);
  text_ += frame.object ? '}' : ']';
}

void JsonWriter::go_back(const Mark& mark) noexcept {
  text_.resize(mark.size);
  if (!frames_.empty()) frames_.back().count = mark.count;
  started_ = false;
}

}  // namespace msprobe
