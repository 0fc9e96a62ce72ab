// SPDX-License-Identifier: Apache-2.0
// The two escaped spellings of strings in old pickle protocols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace msprobe::formats {

/// A quoted Python literal with backslash escapes (opcode STRING). Nothing if it is malformed.
std::optional<std::string> decode_quoted(std::string_view line);

/// Latin-1 with \uXXXX and \UXXXXXXXX (opcode UNICODE), as UTF-8. Nothing if it is malformed.
std::optional<std::string> decode_raw_unicode(std::string_view line);

}  // namespace msprobe::formats
