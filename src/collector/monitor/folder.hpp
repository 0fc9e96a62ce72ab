// SPDX-License-Identifier: Apache-2.0
// Where the files of a rank go.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace msprobe::collector::monitor {

/// <base>/<MonDD_HH-MM-SS>-rank<r>-<8 hex digits>: the time in UTC+8, the digits by chance.
std::string new_rank_folder(const std::string& base, std::int64_t rank);

/// The newest folder of the rank whose time lies in the closed range, if there is one. SettingError
/// (ValueError) if one of the ends is no time.
std::optional<std::string> existing_rank_folder(const std::string& base, std::int64_t rank,
                                                const std::pair<std::string, std::string>& times);

}  // namespace msprobe::collector::monitor
