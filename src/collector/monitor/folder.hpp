// SPDX-License-Identifier: Apache-2.0
// Names and finds the folders for the files of a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace msprobe::collector::monitor {

/// <base>/<MonDD_HH-MM-SS>-rank<r>-<8 hex digits>: the time is in UTC+8, the digits are random.
std::string new_rank_folder(const std::string& base, std::int64_t rank);

/// The newest folder of the rank with a time in the closed range, if any. Throws SettingError (ValueError) if
/// one of the ends is no time.
std::optional<std::string> existing_rank_folder(const std::string& base, std::int64_t rank,
                                                const std::pair<std::string, std::string>& times);

}  // namespace msprobe::collector::monitor
