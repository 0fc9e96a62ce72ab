// SPDX-License-Identifier: Apache-2.0
// The versions of the files that msprobe writes and reads again. A version changes if an earlier msprobe
// could not read the new files, or would misread them. A file without a version has version 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe {

/// The key "format" of dump.json and debug.json, which construct.json and stack.json beside them share.
inline constexpr std::uint64_t kDumpFormat = 1;
/// In the comment of a pack: "msprobe pack 1".
inline constexpr std::uint64_t kPackFormat = 1;

/// Throws FormatError with the file's name unless `version` (as in the file) is a number up to `newest`.
void check_format_version(const std::string& file, std::string_view version, std::uint64_t newest);

}  // namespace msprobe
