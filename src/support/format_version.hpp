// SPDX-License-Identifier: Apache-2.0
// The versions of the files that msprobe writes and reads again. They change when an earlier msprobe could
// not read what is written, or would take it for something else. A file without a version is of the first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe {

/// The key "format" of dump.json and debug.json, which construct.json and stack.json beside them share.
inline constexpr std::uint64_t kDumpFormat = 1;
/// In the comment of a pack: "msprobe pack 1".
inline constexpr std::uint64_t kPackFormat = 1;

/// FormatError naming the file unless `version`, as it stands there, is a number up to `newest`.
void check_format_version(const std::string& file, std::string_view version, std::uint64_t newest);

}  // namespace msprobe
