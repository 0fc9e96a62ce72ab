// SPDX-License-Identifier: Apache-2.0
#include "parse/output_names.hpp"

#include <fmt/format.h>

#include <array>

#include "parse/md5.hpp"
#include "support/ascii.hpp"

namespace msprobe::parse {
namespace {

constexpr std::array<std::string_view, 6> kEndings = {".bin", ".pt", ".pth", ".npy", ".npz", ".safetensors"};

std::size_t known_ending(std::string_view name) {
  for (const std::string_view ending : kEndings) {
    if (ends_with_any_case(name, ending)) return ending.size();
  }
  return 0;
}

}  // namespace

bool ends_with_any_case(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() && lower_case(name.substr(name.size() - ending.size())) == ending;
}

std::string stem_of(std::string_view name) {
  name.remove_suffix(known_ending(name));
  return std::string(name);
}

bool has_known_ending(std::string_view name) {
  return known_ending(name) != 0;
}

std::string safe_part(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  std::string part(name.substr(0, kLongest));
  for (char& c : part) {
    if (!is_letter(c) && !is_digit(c) && c != '-' && c != '.') c = '_';
  }
  return part.empty() ? "_" : part;
}

std::string SafeParts::next(std::string_view name) {
  const std::string part = safe_part(name);
  std::string unique = part;
  // Counting from how many there are, so that many names that become one do not try all numbers before.
  for (std::size_t number = used_.size(); !used_.insert(unique).second; ++number)
    unique = fmt::format("{}.{}", part, number);
  return unique;
}

std::string name_uuid(std::string_view name) {
  // 6ba7b810-9dad-11d1-80b4-00c04fd430c8
  constexpr std::array<std::uint8_t, 16> kDnsNameSpace = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                                          0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
  std::string text(kDnsNameSpace.begin(), kDnsNameSpace.end());
  text += name;
  std::array<std::uint8_t, 16> digest = md5(text);
  digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0f) | 0x30);  // version 3
  digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3f) | 0x80);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace msprobe::parse
