// SPDX-License-Identifier: Apache-2.0
#include "inspect/text_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/ascii.hpp"
#include "support/interrupt.hpp"

namespace msprobe::inspect {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

bool is_name_character(char c) {
  return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

bool each_block(const ByteSource& file,
                const std::function<bool(std::string_view block, std::size_t length)>& take) {
  for (std::uint64_t at = 0; at < file.size(); at += kBlock) {
    check_interrupt();
    const std::uint64_t left = file.size() - at;
    const std::string block = read_text(file, at, std::min<std::uint64_t>(left, kBlock + kOverlap));
    if (!take(block, static_cast<std::size_t>(std::min<std::uint64_t>(left, kBlock)))) return false;
  }
  return true;
}

std::string_view name_at(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_name_character);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

bool is_named(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  const std::string low = lower_case(name);
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return low.ends_with(suffix); });
}

}  // namespace msprobe::inspect
