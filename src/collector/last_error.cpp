// SPDX-License-Identifier: Apache-2.0
#include "collector/last_error.hpp"

#include <array>
#include <cstddef>
#include <string_view>

#include "support/text.hpp"

namespace msprobe::collector {
namespace {

thread_local std::array<char, 1024> t_text = {};

}  // namespace

void set_last_error(const char* text) noexcept {
  const std::string_view whole = text;
  std::size_t size = 0;
  for (std::size_t at = 0; at < whole.size();) {
    const Utf8 character = utf8_at(whole, at);
    const std::string_view part = character.valid ? whole.substr(at, character.length) : "?";
    if (size + part.size() >= t_text.size()) break;
    size += part.copy(t_text.data() + size, part.size());
    at += character.length;
  }
  t_text[size] = '\0';
}

const char* last_error() noexcept {
  return t_text.data();
}

}  // namespace msprobe::collector
