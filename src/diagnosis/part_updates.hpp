// SPDX-License-Identifier: Apache-2.0
// A run whose ranks each update a part of every parameter (FSDP, ZeRO) against one that updates the whole:
// calls of their optimizers have no counterpart; parameters have, where they are used.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnosis/imports.hpp"
#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// Which side updates parts; nothing where both update the same, or no optimizer's calls are recorded.
enum class PartUpdates : std::uint8_t { target, golden };

/// Of the operations that both optimizers call equally often, one side's all take fewer elements in most
/// calls, and more in none. Tables may be null.
std::optional<PartUpdates> part_updates(const dump::Side& target, const dump::ConstructTable* construct,
                                        const dump::Side& golden,
                                        const dump::ConstructTable* golden_construct);

}  // namespace msprobe::diagnosis
