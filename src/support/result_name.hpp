// SPDX-License-Identifier: Apache-2.0
// Names of results: with the time, and such as nothing has yet.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace msprobe {

/// Local time as names of results have it: 20260731235959.
std::string time_stamp(std::time_t when = std::time(nullptr));

/// `{stem}{suffix}`; if there is such a file, the first of `{stem}_1{suffix}`, `{stem}_2{suffix}`, ... that
/// is not there.
std::string unused_path(const std::string& stem, std::string_view suffix);

}  // namespace msprobe
