// SPDX-License-Identifier: Apache-2.0
// Dumps of the Ascend Transformer Boost as a plan: one task.
#pragma once

#include <string>

#include "compare/atb/traits.hpp"
#include "compare/metrics/traits.hpp"
#include "compare/task.hpp"

namespace msprobe::compare {

/// Reads the statistic.csv of both folders; tensors are read when the task runs. FormatError if only one side
/// has tensors.
Plan plan_atb(const std::string& target, const std::string& golden, const AtbTraits& traits,
              const MeasureTraits& measure, Progress* progress);

}  // namespace msprobe::compare
