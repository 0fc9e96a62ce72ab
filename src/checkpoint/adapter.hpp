// SPDX-License-Identifier: Apache-2.0
// LoRA adapters as PEFT saves them (Hu et al. 2021): the update of a weight as a product of two small
// matrices.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// Adds the adapter in `folder` to the weights of `base`. The sums are computed in double while they are
/// read. Weights that the adapter stores whole (`modules_to_save`) replace those of `base`. Returns a line
/// for people. Throws FormatError for another kind of adapter, and for an adapter with a module that `base`
/// does not have.
std::string add_adapter(Checkpoint& base, const std::string& folder);

}  // namespace msprobe::checkpoint
