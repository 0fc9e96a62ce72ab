// SPDX-License-Identifier: Apache-2.0
// By what two dumps can be compared (docs/rules.md, "By what dumps are compared").
#pragma once

#include <optional>
#include <string_view>

#include "measuring/imports.hpp"
#include "pairing/side.hpp"

namespace msprobe::measuring {

enum class Mode { statistics, md5, tensor };
std::string_view mode_name(Mode mode);

/// Whether the checksums are words of 64 bits (xor), not CRC-32; nothing where no tensor shows it.
std::optional<bool> are_xor(const Side& side);

/// FormatError for dumps that do not go together: another task, checksums on one side alone or of two kinds.
Mode choose_mode(const Side& target, const Side& golden);

}  // namespace msprobe::measuring
