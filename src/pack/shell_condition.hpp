// SPDX-License-Identifier: Apache-2.0
// Tests of shell scripts on what is known without running them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::pack {

enum class Truth : std::uint8_t { no, yes, unknown };

Truth negated(Truth truth);
Truth both(Truth a, Truth b);
Truth either(Truth a, Truth b);

/// The words of `[ … ]`, `[[ … ]]` or `test …`, whole, as they are after expansion; nothing for a word that
/// only a running shell knows. Comparisons of texts and of integers, -z, -n, and in `[[ ]]` !, &&, || and
/// parentheses; what else there is, files above all, is unknown.
Truth evaluate_test(const std::vector<std::optional<std::string>>& words);

/// Does a pattern of `case`, of letters, `*` and `?`, fit all of the text? Nothing for a pattern with more to
/// it.
std::optional<bool> fits_pattern(std::string_view pattern, std::string_view text);

}  // namespace msprobe::pack
