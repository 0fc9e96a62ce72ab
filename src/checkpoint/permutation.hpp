// SPDX-License-Identifier: Apache-2.0
// The form of a permutation of rows or columns, in the words of those who convert weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::checkpoint {

/// Where each of `second` stands in `first`: second[i] == first[p[i]]. Of equal values the next one is taken.
/// Nothing if they are not the same values, or in the same order.
std::optional<std::vector<std::int64_t>> permutation_between(std::span<const std::uint64_t> first,
                                                             std::span<const std::uint64_t> second);

/// "reversed", "interleaved -> halves, 64 per head", "blocks of 128 in another order"; "permuted" if it has
/// no form.
std::string permutation_form(std::span<const std::int64_t> permutation);

/// "rows permuted: halves -> interleaved, 64 per head"; `lines` are rows, columns or elements.
std::string permutation_text(std::string_view lines, std::span<const std::int64_t> permutation);

}  // namespace msprobe::checkpoint
