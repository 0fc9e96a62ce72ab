// SPDX-License-Identifier: Apache-2.0
// compare.json of releases 8.x, which names both runs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace msprobe::pairing {

class RequestFile {
 public:
  /// Throws IoError; FormatError for a file that is not a JSON object.
  explicit RequestFile(const std::string& path);

  const nlohmann::json& json() const { return json_; }
  /// Empty if the key does not exist. FormatError if its value is not a text, or if it is `required` and
  /// missing.
  std::string text(const char* key, bool required) const;
  /// FormatError if the value is neither true nor false.
  bool flag(const char* key, bool otherwise) const;

 private:
  std::string path_;
  nlohmann::json json_;
};

}  // namespace msprobe::pairing
