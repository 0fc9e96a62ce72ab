// SPDX-License-Identifier: Apache-2.0
// Chooses the data by which two dumps are compared (docs/rules.md, "By what dumps are compared").
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dump/side.hpp"

namespace msprobe::measuring {

enum class Mode { statistics, md5, tensor };
std::string_view mode_name(Mode mode);

/// Are the checksums words of 64 bits (xor) instead of CRC-32? Nothing if no tensor shows it.
std::optional<bool> are_xor(const dump::Side& side);

/// "this run has tensors, golden statistics: they are compared by the statistics that both have". Empty if
/// both have the same kind of data.
std::string other_data(const dump::Side& target, const dump::Side& golden);

/// Dumps of different tasks are compared by statistics, which every task but structure records. FormatError
/// for dumps that cannot be compared: of another task, or with checksums of two kinds.
Mode choose_mode(const dump::Side& target, const dump::Side& golden);

}  // namespace msprobe::measuring
