// SPDX-License-Identifier: Apache-2.0
// A run whose ranks each update a part of every parameter (FSDP, ZeRO) against one that updates the whole:
// calls of their optimizers have no counterpart; parameters have, where they are used.
#pragma once

#include <cstdint>
#include <optional>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// The side whose optimizer updates parts of parameters.
enum class PartUpdates : std::uint8_t { target, golden };

/// Finds the side that updates parts: among the operations that both optimizers call equally often, all its
/// calls take at most as many elements, and most take fewer. Nothing where both update the same, or where no
/// calls of an optimizer are recorded. Tables may be null.
std::optional<PartUpdates> part_updates(const dump::Side& target, const dump::ConstructTable* construct,
                                        const dump::Side& golden,
                                        const dump::ConstructTable* golden_construct);

}  // namespace msprobe::diagnosis
