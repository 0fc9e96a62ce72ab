// SPDX-License-Identifier: Apache-2.0
// LoRA adapters as PEFT saves them (Hu et al. 2021): the update of a weight as a product of two small
// matrices.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// Adds the adapter in `folder` to the weights of `base`, computed in double while they are read; weights
/// that the adapter holds whole (`modules_to_save`) take the place of those of `base`. Gives a line for
/// people. FormatError for an adapter of another kind, and for one with a module that `base` does not have.
std::string add_adapter(Checkpoint& base, const std::string& folder);

}  // namespace msprobe::checkpoint
