// SPDX-License-Identifier: Apache-2.0
#include "support/file_name.hpp"

#include <algorithm>
#include <cstddef>

#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

constexpr std::size_t kLongestFileName = 255;

bool is_accepted_in_file_names(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == ':' || c == '-';
}

}  // namespace

std::string file_name(std::string_view name, std::string_view suffix) {
  std::string result(name);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return !is_accepted_in_file_names(c); }, '_');
  if (result != name || result.size() + 1 + suffix.size() > kLongestFileName || result.starts_with('.')) {
    const std::string mark = "-" + crc32_hex(name);
    result.resize(std::min(result.size(), kLongestFileName - mark.size() - 1 - suffix.size()));
    if (result.starts_with('.')) result[0] = '_';
    result += mark;
  }
  result += '.';
  result += suffix;
  return result;
}

}  // namespace msprobe
