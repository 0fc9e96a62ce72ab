// SPDX-License-Identifier: Apache-2.0
#include "collector/config_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

constexpr std::uint32_t kMaxNumber = 1'000'000;  // of a step or a rank
constexpr std::size_t kMaxNumbers = 1'000'000;   // elements of such a list

}  // namespace

void check_utf8(std::string_view text, const std::string& name) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8 character = utf8_at(text, at);
    if (!character.valid) {
      throw FormatError(name, fmt::format("not valid JSON: byte {} is 0x{:02x}, which is not UTF-8", at + 1,
                                          static_cast<unsigned char>(text[at])));
    }
    at += character.length;
  }
}

void ConfigReader::fail(std::string_view key, const std::string& reason) const {
  throw FormatError(where_, std::string(key) + ": " + reason);
}

const ConfigReader::Json* ConfigReader::find(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found == object_.end() ? nullptr : &*found;
}

const ConfigKey& ConfigReader::key_of(std::string_view key) const {
  return *std::ranges::find(keys_of(place_), key, &ConfigKey::name);
}

ConfigReader::Json ConfigReader::value(std::string_view key) const {
  const Json* found = find(key);
  // The Python tool does the same.
  const bool absent =
      found == nullptr ||
      ((place_ == KeyGroup::free_benchmark || place_ == KeyGroup::kernels) && found->is_null());
  return absent ? Json::parse(key_of(key).fallback) : *found;
}

std::string ConfigReader::text(std::string_view key) const {
  const Json found = value(key);
  if (!found.is_string()) fail(key, "must be a string");
  return found.get<std::string>();
}

bool ConfigReader::boolean(std::string_view key) const {
  const Json found = value(key);
  if (!found.is_boolean()) fail(key, "must be true or false");
  return found.get<bool>();
}

std::vector<std::string> ConfigReader::texts(std::string_view key) const {
  std::vector<std::string> result;
  const Json found = value(key);
  if (found.is_null()) return result;
  if (!found.is_array()) fail(key, "must be a list of strings");
  for (const Json& item : found) {
    if (!item.is_string()) fail(key, "must be a list of strings");
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::string ConfigReader::word(std::string_view key) const {
  const Json found = value(key);
  if (!found.is_string()) fail(key, fmt::format("must be one of {}", fmt::join(key_of(key).choices, ", ")));
  return found.get<std::string>();
}

std::size_t ConfigReader::choice(std::string_view key, std::string_view word) const {
  const std::span<const std::string_view> choices = key_of(key).choices;
  const auto found = std::ranges::find(choices, word);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  fail(key, fmt::format("\"{}\" must be one of {}", display(word), fmt::join(choices, ", ")));
}

std::uint32_t ConfigReader::count(std::string_view key) const {
  const Json found = value(key);
  const ConfigKey& known = key_of(key);
  if (!found.is_number_integer() || found < known.least || found > known.most)
    fail(key, fmt::format("must be a whole number from {} to {}", known.least, known.most));
  return found.get<std::uint32_t>();
}

std::int64_t ConfigReader::integer(std::string_view key, const Json& value) const {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX})
    fail(key, "is too large");
  if (!value.is_number_integer()) fail(key, "must be an integer");
  return value.get<std::int64_t>();
}

std::vector<std::uint32_t> ConfigReader::numbers(std::string_view key) const {
  return numbers(key, value(key));
}

std::vector<std::uint32_t> ConfigReader::numbers(std::string_view key, const Json& value) const {
  if (value.is_null()) return {};
  if (!value.is_array()) fail(key, "must be a list of integers and of ranges such as \"2-5\"");
  if (value.size() > kMaxNumbers) fail(key, "has too many elements");
  std::set<std::uint32_t> result;
  for (const Json& item : value) {
    if (item.is_string()) {
      const auto [first, last] = range(key, item.get<std::string>());
      if (result.size() + (last - first) >= kMaxNumbers) fail(key, "has too many elements");
      for (std::uint32_t number = first; number <= last; ++number) result.insert(number);
    } else {
      const std::int64_t number = integer(key, item);
      if (number < 0 || number > kMaxNumber) fail(key, "must be from 0 to 1000000");
      result.insert(static_cast<std::uint32_t>(number));
    }
  }
  return {result.begin(), result.end()};
}

std::pair<std::uint32_t, std::uint32_t> ConfigReader::range(std::string_view key,
                                                            const std::string& text) const {
  const auto number = [&](std::string_view digits) {
    const auto value = whole_number<std::uint32_t>(digits);
    if (!value || *value > kMaxNumber)
      fail(key, "\"" + text + "\" must be a number from 0 to 1000000 or a range such as \"2-5\"");
    return *value;
  };
  const std::size_t dash = text.find('-');
  const std::uint32_t first = number(std::string_view(text).substr(0, dash));
  const std::uint32_t last =
      dash == std::string::npos ? first : number(std::string_view(text).substr(dash + 1));
  if (first > last) fail(key, "the range \"" + text + "\" runs backwards");
  return {first, last};
}

}  // namespace msprobe::collector
