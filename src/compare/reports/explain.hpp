// SPDX-License-Identifier: Apache-2.0
// One entry's whole story on the terminal, as the report's panel tells it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compare/result/result.hpp"

namespace msprobe::compare {

/// All that is known of an entry (or of one row, if `name` is that of a row): both sides, metrics, messages,
/// the stack with the user's own frames first, the entries before and after. Empty if the result has no such
/// entry.
std::string explain(const RankResult& result, std::string_view name, std::size_t width, bool color);

struct SimilarName {
  std::size_t distance = 0;
  std::string name;
};

/// The entries whose names are most like this one, at most `count`, nearest first.
std::vector<SimilarName> similar_entries(const RankResult& result, std::string_view name, std::size_t count);

/// An error that names the most similar of all ranks.
[[noreturn]] void throw_no_such_entry(std::string_view name, std::vector<SimilarName> similar);

}  // namespace msprobe::compare
