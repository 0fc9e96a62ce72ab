// SPDX-License-Identifier: Apache-2.0
// What is in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe {

enum class Named : std::uint8_t { all, folders, regular_files };  // links count as what they lead to

/// Names in a folder, sorted. IoError if it cannot be read.
std::vector<std::string> names_in(const std::string& folder, Named which = Named::all);

}  // namespace msprobe
