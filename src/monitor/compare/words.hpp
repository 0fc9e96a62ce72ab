// SPDX-License-Identifier: Apache-2.0
// What a comparison of two runs says to people.
#pragma once

#include <string>
#include <vector>

#include "monitor/compare/compare.hpp"

namespace msprobe::monitor {

/// "layers.3.mlp.weight, grad_reduced, norm, rank 0", safe to show.
std::string place_of(const SeriesResult& result, bool several_ranks);

/// One sentence: at which step and quantity the runs part, or that they do not.
std::string headline(const Comparison& comparison);

/// What that tells of the cause; empty where they do not part.
std::string cause(const Comparison& comparison);

/// Why a row of the table has its result.
std::string message_of(const SeriesResult& result);

/// What one run has alone, one thing a text.
std::vector<std::string> not_compared(const Comparison& comparison);

/// All of it, in lines: the sentence, the cause, the quantities, what was not compared.
std::string summary(const Comparison& comparison, bool color);

}  // namespace msprobe::monitor
