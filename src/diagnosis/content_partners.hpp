// SPDX-License-Identifier: Apache-2.0
// Finds the partner of each item in another code base by the contents of the tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/implementation.hpp"
#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

/// The partner of each item of the target in the other code base, with the same role if that exists. Partners
/// have the same content, or are gradients of the same parameter. kNone: the item has no partner.
std::vector<std::uint32_t> partners_of(const Implementation& ours, const Implementation& theirs,
                                       const ParameterMap& parameters, const Meetings& meetings);

/// The same for a rank that is compared in no other way.
std::vector<std::uint32_t> partners_by_content(const measuring::MeasuredRank& rank);

}  // namespace msprobe::diagnosis
