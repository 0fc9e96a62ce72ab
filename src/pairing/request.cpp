// SPDX-License-Identifier: Apache-2.0
#include "pairing/request.hpp"

#include <cstdint>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pairing {

RequestFile::RequestFile(const std::string& path) : path_(path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  json_ = nlohmann::json::parse(read_all(*open_file(path), kMostBytes), nullptr, false);
  if (!json_.is_object()) throw FormatError(display(path), "not a JSON object");
}

std::string RequestFile::text(const char* key, bool required) const {
  const auto found = json_.find(key);
  if (found == json_.end()) {
    if (required) throw FormatError(display(path_), std::string("Missing ") + key);
    return {};
  }
  if (!found->is_string()) throw FormatError(display(path_), std::string(key) + " must be text");
  return found->get<std::string>();
}

bool RequestFile::flag(const char* key, bool otherwise) const {
  const auto found = json_.find(key);
  if (found == json_.end()) return otherwise;
  if (!found->is_boolean()) throw FormatError(display(path_), std::string(key) + " must be true or false");
  return found->get<bool>();
}

}  // namespace msprobe::pairing
