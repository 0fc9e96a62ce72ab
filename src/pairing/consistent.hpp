// SPDX-License-Identifier: Apache-2.0
// Pairs a training of verl (the target) with its inference: modules by layer and mapped name, several of one
// side with one of the other where an engine fuses them (docs/pairing.md, "--consistent_check").
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "pairing/matching.hpp"
#include "pairing/side.hpp"

namespace msprobe::pairing {

/// The software that ran the training.
enum class Backend { fsdp, megatron };
std::optional<Backend> backend_from_name(std::string_view name);

/// Makes the rows of both sides, including those that only one side has. Adds items to a side where several
/// count as one. Throws FormatError if repeated names would multiply the rows without bound, or if traits
/// treat them as a conflict.
Matching match_consistent(Side& target, Side& golden, Backend backend);

}  // namespace msprobe::pairing
