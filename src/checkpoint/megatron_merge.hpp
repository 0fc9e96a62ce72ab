// SPDX-License-Identifier: Apache-2.0
// Slices of tensor-parallel ranks to whole parameters, by Megatron's rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// What the rules need besides the slices.
struct MergeContext {
  /// The slice of another parameter on the same rank as `slices[0]`; nullptr if there is none.
  std::function<const Parameter*(const std::string& name)> sibling;
  std::optional<bool> gated;                  // args.swiglu
  std::optional<std::int64_t> local_experts;  // of grouped experts in one tensor
};

/// Joins the slices, which are in rank order, all of one name (today's). What cannot be joined has a problem.
Entry merge_slices(const std::string& name, const std::vector<Parameter>& slices,
                   const MergeContext& context);

/// Grouped experts in one tensor, of all expert-parallel ranks.
Entry join_expert_groups(const std::string& name, const std::vector<Parameter>& groups);

}  // namespace msprobe::checkpoint
