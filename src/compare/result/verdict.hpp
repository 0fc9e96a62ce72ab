// SPDX-License-Identifier: Apache-2.0
// From numbers to verdicts: the rules of spec/compare.md 9.
#pragma once

#include "compare/result/result.hpp"
#include "compare/rules/rules.hpp"

namespace msprobe::compare {

/// Gives every row its verdict and adds the rules' messages behind those it has.
void judge(RankResult& result, const Rules& rules);

}  // namespace msprobe::compare
