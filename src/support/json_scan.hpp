// SPDX-License-Identifier: Apache-2.0
// Walks through one JSON value in memory: checks every byte, allocates nothing, and passes the tokens to a
// handler exactly as they are in the file. Accepts the same texts as Python's json module: bare NaN, Infinity
// and -Infinity, integers of any length, escaped surrogates without a partner.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe {

enum class ScanStatus : std::uint8_t {
  done,
  incomplete,  // the text ends inside the value (or a number extends to its end)
  broken,
};

/// The greatest depth: 400 levels of a value in a dump.json, plus root, data, entry, section.
inline constexpr std::size_t kMaxJsonDepth = 404;

/// The text to scan must be followed by this many NUL bytes.
inline constexpr std::size_t kScanPadding = 8;

/// The calls that scan_value() makes; a base for handlers that need only some of them.
struct IgnoreTokens {
  void restart() {}
  void open(bool /*object*/) {}
  void close(bool /*object*/) {}
  void key(std::string_view /*raw*/, bool /*escaped*/) {}
  void string(std::string_view /*raw*/, bool /*escaped*/) {}
  /// `exponent` points at the e, or is null.
  void number(std::string_view /*text*/, const char* /*exponent*/) {}
  /// 'n', 't' or 'f'.
  void literal(char /*first*/) {}
};

struct Scan {
  const char* at = nullptr;      // the position; after the value at the end
  const char* end = nullptr;     // end of the text
  const char* reason = nullptr;  // why it is broken

  ScanStatus fail(const char* why) {
    if (at >= end) return ScanStatus::incomplete;
    reason = why;
    return ScanStatus::broken;
  }
};

inline void skip_blanks(Scan& scan) {
  while (*scan.at == ' ' || *scan.at == '\n' || *scan.at == '\r' || *scan.at == '\t') ++scan.at;
}

/// The next byte of a string that needs attention: quote, backslash, control character, non-ASCII.
inline const char* next_special(const char* at) {
  if constexpr (std::endian::native == std::endian::little) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHigh = 0x8080808080808080;
    for (;; at += 8) {
      std::uint64_t v = 0;
      std::memcpy(&v, at, 8);
      const std::uint64_t quote = v ^ (kOnes * '"');
      const std::uint64_t slash = v ^ (kOnes * '\\');
      // A wrong mark is possible only after a right one, so the first mark is right.
      const std::uint64_t marks =
          (((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash) | (v - kOnes * 0x20) | v) & kHigh;
      if (marks != 0) return at + std::countr_zero(marks) / 8;
    }
  } else {
    while (static_cast<unsigned char>(*at) >= 0x20 && static_cast<unsigned char>(*at) < 0x80 && *at != '"' &&
           *at != '\\') {
      ++at;
    }
    return at;
  }
}

/// Scans from after the opening quote to after the closing one.
inline ScanStatus scan_string(Scan& scan, bool& escaped) {
  for (;;) {
    scan.at = next_special(scan.at);
    if (scan.at >= scan.end) {
      scan.at = scan.end;
      return ScanStatus::incomplete;
    }
    const auto left = static_cast<std::size_t>(scan.end - scan.at);
    const char c = *scan.at;
    if (c == '"') {
      ++scan.at;
      return ScanStatus::done;
    }
    if (c == '\\') {
      escaped = true;
      const char kind = scan.at[1];
      if (left < 2 || (kind == 'u' && left < 6)) return ScanStatus::incomplete;
      if (kind == 'u') {
        for (int k = 2; k < 6; ++k) {
          if (!is_hex(scan.at[k])) return scan.fail("\\u without four hexadecimal digits");
        }
        scan.at += 6;
      } else if (std::memchr("\"\\/bfnrt", kind, 8) != nullptr) {
        scan.at += 2;
      } else {
        return scan.fail("unknown escape in a string");
      }
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) return scan.fail("control character in a string");
    const Utf8 character = utf8_at({scan.at, left}, 0);
    if (!character.valid) {
      if (left < 4) return ScanStatus::incomplete;
      return scan.fail("text that is not UTF-8");
    }
    scan.at += character.length;
  }
}

inline ScanStatus scan_word(Scan& scan, std::string_view word) {
  for (const char c : word) {
    if (*scan.at != c) return scan.fail("not a JSON value");
    ++scan.at;
  }
  return ScanStatus::done;
}

inline ScanStatus scan_number(Scan& scan, const char*& exponent) {
  const auto digits = [&] {
    const char* first = scan.at;
    while (is_digit(*scan.at)) ++scan.at;
    return scan.at != first;
  };
  exponent = nullptr;
  if (*scan.at == 'N') return scan_word(scan, "NaN");
  if (*scan.at == '-') ++scan.at;
  if (*scan.at == 'I') return scan_word(scan, "Infinity");
  if (*scan.at == '0') {
    ++scan.at;
  } else if (!digits()) {
    return scan.fail("not a JSON value");
  }
  if (*scan.at == '.') {
    ++scan.at;
    if (!digits()) return scan.fail("no digit after the decimal point");
  }
  if (*scan.at == 'e' || *scan.at == 'E') {
    exponent = scan.at++;
    if (*scan.at == '+' || *scan.at == '-') ++scan.at;
    if (!digits()) return scan.fail("no digit in the exponent");
  }
  return scan.at == scan.end ? ScanStatus::incomplete : ScanStatus::done;
}

/// Scans one value; `max_depth` levels of containers are accepted.
template <typename Handler>
ScanStatus scan_value(Scan& scan, Handler& handler, std::size_t max_depth = kMaxJsonDepth) {
  std::array<bool, kMaxJsonDepth> is_object;
  std::size_t depth = 0;
  bool expect_key = false;
  for (;;) {
    skip_blanks(scan);
    if (expect_key) {
      if (*scan.at != '"') return scan.fail("a member of an object has no name");
      const char* first = ++scan.at;
      bool escaped = false;
      if (const ScanStatus status = scan_string(scan, escaped); status != ScanStatus::done) return status;
      handler.key({first, static_cast<std::size_t>(scan.at - 1 - first)}, escaped);
      skip_blanks(scan);
      if (*scan.at != ':') return scan.fail("expected a colon after a member name");
      ++scan.at;
      skip_blanks(scan);
    }
    const char c = *scan.at;
    bool opened = false;
    if (c == '"') {
      const char* first = ++scan.at;
      bool escaped = false;
      if (const ScanStatus status = scan_string(scan, escaped); status != ScanStatus::done) return status;
      handler.string({first, static_cast<std::size_t>(scan.at - 1 - first)}, escaped);
    } else if (c == '{' || c == '[') {
      if (depth == max_depth || depth == kMaxJsonDepth) return scan.fail("nested too deeply");
      is_object[depth++] = c == '{';
      handler.open(c == '{');
      ++scan.at;
      opened = true;
    } else if (c == 'n' || c == 't' || c == 'f') {
      const std::string_view word = c == 'n' ? "null" : c == 't' ? "true" : "false";
      if (const ScanStatus status = scan_word(scan, word); status != ScanStatus::done) return status;
      handler.literal(c);
    } else {
      const char* first = scan.at;
      const char* exponent = nullptr;
      if (const ScanStatus status = scan_number(scan, exponent); status != ScanStatus::done) return status;
      handler.number({first, static_cast<std::size_t>(scan.at - first)}, exponent);
    }
    // A value, or a container, may end here.
    for (;;) {
      if (depth == 0) return ScanStatus::done;
      skip_blanks(scan);
      const bool object = is_object[depth - 1];
      if (*scan.at == (object ? '}' : ']')) {
        ++scan.at;
        --depth;
        handler.close(object);
        opened = false;
        continue;
      }
      if (!opened) {
        if (*scan.at != ',') return scan.fail("expected a comma or the end of an object or list");
        ++scan.at;
      }
      expect_key = object;
      break;
    }
  }
}

}  // namespace msprobe
