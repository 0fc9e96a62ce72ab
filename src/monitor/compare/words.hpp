// SPDX-License-Identifier: Apache-2.0
// The sentences by which a comparison of two runs reports its results.
#pragma once

#include <string>
#include <vector>

#include "monitor/compare/compare.hpp"

namespace msprobe::monitor {

/// "layers.3.mlp.weight, grad_reduced, norm, rank 0", safe to show.
std::string place_of(const SeriesResult& result, bool several_ranks);

/// One sentence: at which step and quantity the runs part, or that they do not.
std::string headline(const MonitorComparison& comparison);

/// A sentence about the cause that the moment of parting suggests; empty if the runs do not part.
std::string cause(const MonitorComparison& comparison);

/// Why a row of the table has its result.
std::string message_of(const SeriesResult& result);

/// The data that only one run has, one text for each.
std::vector<std::string> not_compared(const MonitorComparison& comparison);

/// The whole report in lines: the headline, the cause, the quantities, and what was not compared.
std::string summary(const MonitorComparison& comparison, bool color);

}  // namespace msprobe::monitor
