// SPDX-License-Identifier: Apache-2.0
// How alike two texts are, by the measure of Python's difflib.
#pragma once

#include <string_view>

namespace msprobe::config_check {

/// No longer texts are compared: they are alike if they are equal.
inline constexpr std::size_t kMostCompared = 2000;

/// `SequenceMatcher(None, a, b).ratio()`: twice the length of the matching blocks over the sum of the
/// lengths, in characters; 1 for two empty texts. Not symmetric.
double similarity(std::string_view a, std::string_view b);

/// Nothing below this can be hoped for: an upper bound of similarity() that is cheap.
double similarity_bound(std::string_view a, std::string_view b);

}  // namespace msprobe::config_check
