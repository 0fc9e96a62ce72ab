// SPDX-License-Identifier: Apache-2.0
// How results are called.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace msprobe::parse {

/// Does the name end so, in capitals or not? `ending` is in small letters.
bool ends_with_any_case(std::string_view name, std::string_view ending);

/// The name without its extension if that belongs to a known kind of tensor file (.bin, .pt, .npy, …), else
/// the whole name.
std::string stem_of(std::string_view name);
/// Is there such an ending?
bool has_known_ending(std::string_view name);

/// A name from a file, made safe for a part of a file name: characters other than letters, digits, `_`, `-`
/// and `.` become `_`, and the text is cut to leave room for the rest.
std::string safe_part(std::string_view name);

/// Hands out safe parts that differ from each other.
class SafeParts {
 public:
  std::string next(std::string_view name);

 private:
  std::unordered_set<std::string> used_;
};

/// From this length on the system would refuse a file name.
inline constexpr std::size_t kNameLimit = 255;
/// 32 hex digits that identify a name: its version 3 UUID in the DNS name space (RFC 4122). The vendor's
/// converter uses it for long names.
std::string name_uuid(std::string_view name);

}  // namespace msprobe::parse
