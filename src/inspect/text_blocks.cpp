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

void each_line(const ByteSource& file, const std::function<bool(std::uint64_t begin, char first)>& take) {
  std::uint64_t block_begin = 0;
  bool at_begin = true;
  each_block(file, [&](std::string_view block, std::size_t length) {
    block = block.substr(0, length);
    for (std::size_t at = 0; at < length;) {
      if (at_begin && block[at] != '\n' && !take(block_begin + at, block[at])) return false;
      const std::size_t end = block.find('\n', at);
      at_begin = end != std::string_view::npos;
      at = at_begin ? end + 1 : length;
    }
    block_begin += length;
    return true;
  });
}

bool is_named(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  const std::string low = lower_case(name);
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return low.ends_with(suffix); });
}

bool has_word(std::string_view words, std::string_view word) {
  if (word.find(' ') != std::string_view::npos) return false;
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const bool begins = at == 0 || words[at - 1] == ' ';
    const bool ends = at + word.size() == words.size() || words[at + word.size()] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace msprobe::inspect
