// SPDX-License-Identifier: Apache-2.0
// Reads the values of one object of config.json, guided by the table of its keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/config_keys.hpp"

namespace msprobe::collector {

/// Throws FormatError with the first wrong byte if a configuration is not UTF-8, as all JSON is.
void check_utf8(std::string_view text, const std::string& name);

/// An absent key has the default of the table. A wrong value throws a FormatError with `where`, the key and
/// the possible values.
class ConfigReader {
 public:
  using Json = nlohmann::ordered_json;

  ConfigReader(const Json& object, KeyGroup place, std::string where)
      : object_(object), place_(place), where_(std::move(where)) {}

  [[noreturn]] void fail(std::string_view key, const std::string& reason) const;

  /// Null if the key is absent.
  const Json* find(std::string_view key) const;

  std::string text(std::string_view key) const;
  bool boolean(std::string_view key) const;
  /// Reads null as an empty list.
  std::vector<std::string> texts(std::string_view key) const;
  /// One of the key's choices.
  std::string word(std::string_view key) const;
  /// The place of the value, or of `word` from elsewhere, among the choices.
  std::size_t choice(std::string_view key) const { return choice(key, word(key)); }
  std::size_t choice(std::string_view key, std::string_view word) const;
  /// A whole number in the key's range.
  std::uint32_t count(std::string_view key) const;
  std::int64_t integer(std::string_view key, const Json& value) const;
  /// Numbers and ranges, [0, "3", "5-7"], as a sorted list without duplicates; null is an empty list.
  std::vector<std::uint32_t> numbers(std::string_view key) const;
  std::vector<std::uint32_t> numbers(std::string_view key, const Json& value) const;

 private:
  const ConfigKey& key_of(std::string_view key) const;
  Json value(std::string_view key) const;
  std::pair<std::uint32_t, std::uint32_t> range(std::string_view key, const std::string& text) const;

  const Json& object_;
  KeyGroup place_;
  std::string where_;
};

}  // namespace msprobe::collector
