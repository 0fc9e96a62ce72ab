// SPDX-License-Identifier: Apache-2.0
// Chooses the data by which two dumps are compared (docs/rules.md, "By what dumps are compared").
#pragma once

#include <optional>
#include <string_view>

#include "measuring/imports.hpp"
#include "pairing/side.hpp"

namespace msprobe::measuring {

enum class Mode { statistics, md5, tensor };
std::string_view mode_name(Mode mode);

/// Are the checksums words of 64 bits (xor) instead of CRC-32? Nothing if no tensor shows it.
std::optional<bool> are_xor(const Side& side);

/// FormatError for dumps that cannot be compared: different tasks, checksums on only one side, or of two
/// kinds.
Mode choose_mode(const Side& target, const Side& golden);

}  // namespace msprobe::measuring
