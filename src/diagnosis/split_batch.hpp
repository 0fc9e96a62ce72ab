// SPDX-License-Identifier: Apache-2.0
// Sides that divide the rows of a step into different numbers of parts (micro-batches, gradient accumulation,
// two calls for one). The tensors of one part have no counterpart; what goes before and what the parts add up
// to have one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "diagnosis/flow.hpp"
#include "dump/construct_json.hpp"
#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::diagnosis {

struct SplitBatch {
  std::uint64_t target = 1;  // how many parts each side has
  std::uint64_t golden = 1;
  double share = 1;         // how many elements of golden's the parts of the target have
  std::uint32_t first = 0;  // the first entry of each side that computes a part
  std::uint32_t golden_first = 0;
  /// Calls whose numbers differ: names without numbers. A call of the same parts pairs with any of them.
  std::unordered_set<std::string_view> repeated;

  /// Filled by the walk: parts of the target that have a partner, and what parts give on both sides.
  std::unordered_set<std::uint32_t> entries;
  ContentMap outputs;
  ContentMap golden_outputs;

  bool has(std::uint32_t target_api, std::string_view base) const {
    return target_api >= first && repeated.contains(base);
  }
  bool has_golden(std::uint32_t golden_api, std::string_view base) const {
    return golden_api >= golden_first && repeated.contains(base);
  }
};

/// Finds a split batch: most modules are called on as many rows in both runs, but in more calls in one. Where
/// no module is recorded, or all run as often, operations outside of modules decide. Tables may be null.
std::optional<SplitBatch> split_batch(const dump::Side& target, const dump::Side& golden,
                                      const pairing::Alignment& alignment,
                                      const dump::ConstructTable* construct,
                                      const dump::ConstructTable* golden_construct);

}  // namespace msprobe::diagnosis
