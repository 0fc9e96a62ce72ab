// SPDX-License-Identifier: Apache-2.0
// How results are called.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

namespace msprobe::parse {

/// Does the name end so, in capitals or not? `ending` is in small letters.
bool ends_with_any_case(std::string_view name, std::string_view ending);

/// The name without its ending if that is one of the tensor files we know (.bin, .pt, .npy, …), else the name
/// as it is.
std::string stem_of(std::string_view name);
/// Is there such an ending?
bool has_known_ending(std::string_view name);

/// A name out of a file made safe for a part of a file name: what is not a letter, digit, `_`, `-` or `.`
/// becomes `_`, and it is cut to a length that leaves room for the rest.
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
/// 32 hex digits that stand for a name: its version 3 UUID in the DNS name space (RFC 4122), which is what
/// the vendor's converter takes for long names.
std::string name_uuid(std::string_view name);

}  // namespace msprobe::parse
