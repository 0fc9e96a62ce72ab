// SPDX-License-Identifier: Apache-2.0
// Measures the similarity of two texts as Python's difflib does.
#pragma once

#include <string_view>

namespace msprobe::config_check {

/// Longer texts are not compared in detail: their similarity is 1 if they are equal, else 0.
inline constexpr std::size_t kMostCompared = 2000;

/// `SequenceMatcher(None, a, b).ratio()`: twice the length of the matching blocks over the sum of the
/// lengths, in characters; 1 for two empty texts. Not symmetric.
double similarity(std::string_view a, std::string_view b);

/// A cheap upper bound of similarity(): if it is below a limit, similarity() is, too.
double similarity_bound(std::string_view a, std::string_view b);

}  // namespace msprobe::config_check
