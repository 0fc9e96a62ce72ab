// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace msprobe::parse {

/// MD5 (RFC 1321) of short texts. For names only: it protects against nothing.
std::array<std::uint8_t, 16> md5(std::string_view text);

}  // namespace msprobe::parse
