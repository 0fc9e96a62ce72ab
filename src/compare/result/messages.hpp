// SPDX-License-Identifier: Apache-2.0
// Findings in words, as the Err_message column and the summary have them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/result/result.hpp"

namespace msprobe::compare {

/// One for each finding, those of a warning or error with that word in front.
std::vector<std::string> messages_of(const RankResult& result, std::size_t row);

/// What made the row's verdict: the first finding of that level. Nothing for a row that passes.
std::optional<Rule> decisive_rule(const Row& row);

/// The words of a finding, without its level.
std::string words_of(Rule rule, const RankResult& result, std::size_t row);

}  // namespace msprobe::compare
