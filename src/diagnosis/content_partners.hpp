// SPDX-License-Identifier: Apache-2.0
// By item its partner in another code base, known by what is in the tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/implementation.hpp"
#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

/// By item under test its partner in the other code base, of the same role where that has one: contents that
/// are the same, and gradients of parameters that are. kNone: it has none.
std::vector<std::uint32_t> partners_of(const Implementation& ours, const Implementation& theirs,
                                       const ParameterMap& parameters, const Meetings& meetings);

/// The same for a rank of which nothing else is asked.
std::vector<std::uint32_t> partners_by_content(const measuring::MeasuredRank& rank);

}  // namespace msprobe::diagnosis
