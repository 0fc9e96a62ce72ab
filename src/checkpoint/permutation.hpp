// SPDX-License-Identifier: Apache-2.0
// Describes a permutation of rows or columns in the words of people who convert weights.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::checkpoint {

/// The place of each element of `second` in `first`: second[i] == first[p[i]]. Equal values are used in their
/// order. Returns nothing if the values are not the same, or if their order is.
std::optional<std::vector<std::int64_t>> permutation_between(std::span<const std::uint64_t> first,
                                                             std::span<const std::uint64_t> second);

/// "reversed", "interleaved -> halves, 64 per head", "blocks of 128 in another order"; "permuted" if it has
/// no form.
std::string permutation_form(std::span<const std::int64_t> permutation);

/// "rows permuted: halves -> interleaved, 64 per head"; `lines` are rows, columns or elements.
std::string permutation_text(std::string_view lines, std::span<const std::int64_t> permutation);

}  // namespace msprobe::checkpoint
