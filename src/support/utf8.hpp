// SPDX-License-Identifier: Apache-2.0
// Ranges of characters, and their encoding as UTF-8; utf8_at() of support/text.hpp decodes them.
#pragma once

#include <cstdint>
#include <string>

namespace msprobe {

/// From the first to the last, which is one of them.
struct CharacterRange {
  char32_t first;
  char32_t last;

  bool holds(char32_t c) const { return c >= first && c <= last; }
};

/// Appends the character. A surrogate becomes three bytes that are not valid UTF-8, as in an encoder without
/// checks.
inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  const auto put_low = [&](unsigned shift) { put(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6));
    put_low(0);
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12));
    put_low(6);
    put_low(0);
  } else {
    put(0xF0U | (code >> 18));
    put_low(12);
    put_low(6);
    put_low(0);
  }
}

}  // namespace msprobe
