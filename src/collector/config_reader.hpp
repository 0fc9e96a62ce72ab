// SPDX-License-Identifier: Apache-2.0
// Reads the values of one object of config.json by the table of its keys.
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

/// FormatError that names the first byte of a configuration that is no UTF-8, as all of JSON is.
void check_utf8(std::string_view text, const std::string& name);

/// What is absent has the default of the table. A wrong value is a FormatError with `where`, the key and the
/// values that are possible.
class ConfigReader {
 public:
  using Json = nlohmann::ordered_json;

  ConfigReader(const Json& object, KeyGroup place, std::string where)
      : object_(object), place_(place), where_(std::move(where)) {}

  [[noreturn]] void fail(std::string_view key, const std::string& reason) const;

  /// Null if it is absent.
  const Json* find(std::string_view key) const;

  std::string text(std::string_view key) const;
  bool boolean(std::string_view key) const;
  /// null is an empty list.
  std::vector<std::string> texts(std::string_view key) const;
  /// One of its choices.
  std::string word(std::string_view key) const;
  /// Its place among the choices, that of `word` for a value from elsewhere.
  std::size_t choice(std::string_view key) const { return choice(key, word(key)); }
  std::size_t choice(std::string_view key, std::string_view word) const;
  /// A whole number of the key's range.
  std::uint32_t count(std::string_view key) const;
  std::int64_t integer(std::string_view key, const Json& value) const;
  /// Numbers and ranges, [0, "3", "5-7"], as a sorted list without duplicates; null is an empty list.
  std::vector<std::uint32_t> numbers(std::string_view key) const;
  std::vector<std::uint32_t> numbers(std::string_view key, const Json& value) const;

 private:
  const Key& key_of(std::string_view key) const;
  Json value(std::string_view key) const;
  std::pair<std::uint32_t, std::uint32_t> range(std::string_view key, const std::string& text) const;

  const Json& object_;
  KeyGroup place_;
  std::string where_;
};

}  // namespace msprobe::collector
