// SPDX-License-Identifier: Apache-2.0
// A pack has its format version in the comment of the archive, which the Python tool does not read.
#pragma once

#include <string>
#include <string_view>

#include "support/format_version.hpp"

namespace msprobe::pack {

inline constexpr std::string_view kFormatMark = "msprobe pack ";

inline std::string format_comment() {
  return std::string(kFormatMark) + std::to_string(kPackFormat);
}

}  // namespace msprobe::pack
