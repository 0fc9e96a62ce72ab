// SPDX-License-Identifier: Apache-2.0
// Joins slices of tensor-parallel ranks to whole parameters, by Megatron's rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// The facts that the rules need besides the slices.
struct MergeContext {
  /// Gives the slice of another parameter on the same rank as `slices[0]`, or nullptr.
  std::function<const Parameter*(const std::string& name)> sibling;
  std::optional<bool> gated;                  // args.swiglu
  std::optional<std::int64_t> local_experts;  // of grouped experts in one tensor
};

/// Joins slices of one name (today's), which are in rank order. An entry that cannot be joined has a problem.
CheckpointEntry merge_slices(const std::string& name, const std::vector<Parameter>& slices,
                             const MergeContext& context);

/// Joins grouped experts in one tensor, from all expert-parallel ranks.
CheckpointEntry join_expert_groups(const std::string& name, const std::vector<Parameter>& groups);

}  // namespace msprobe::checkpoint
