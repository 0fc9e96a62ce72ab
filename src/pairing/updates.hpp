// SPDX-License-Identifier: Apache-2.0
// Finds the parameter that a call of an optimizer updates. The calls of two runs pair by parameter, whatever
// order and number each run has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::pairing {

/// The name that construct.json has for the place around an optimizer's calls.
inline constexpr std::string_view kOptimizer = "optimizer";

/// The parameters of a side's modules, found by the contents of their tensors and gradients.
class Parameters {
 public:
  explicit Parameters(const dump::Side& side);

  /// A hash of the parameter's name in the model; 0 if the item is not a parameter, or if several look like
  /// it.
  std::uint64_t of(const dump::Item& item) const;
  bool empty() const { return names_.empty(); }
  /// A hash of a tensor's shape and statistics, by which it is found; 0 for constants, and without
  /// statistics.
  std::uint64_t content(const dump::Item& item) const;

 private:
  void add(const dump::Item& item, std::uint64_t name);

  const dump::Side& side_;
  std::unordered_map<std::uint64_t, std::uint64_t> names_;  // by content; 0: several parameters have it
};

/// The name of a parameter as a number; never 0.
std::uint64_t parameter_key(const dump::Side& side, const dump::Item& item);

/// The calls of a side's optimizers in order, by the key of each parameter that they take, itself or its
/// gradient.
std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> calls_by_parameter(
    const dump::Side& side, const dump::ConstructTable& construct);

/// Pairs of calls of two optimizers that update the same parameter.
struct UpdatePairs {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // target and golden
  /// Marks the entries that are calls for parameters that the other side does not have.
  std::vector<bool> target_alone;
  std::vector<bool> golden_alone;
};

/// Pairs the calls of the optimizers; nothing if both sides go through the same parameters in the same order,
/// or if a side knows no parameter.
std::optional<UpdatePairs> pair_updates(const dump::Side& target,
                                        const dump::ConstructTable& target_construct,
                                        const dump::Side& golden,
                                        const dump::ConstructTable& golden_construct);

/// `_fused_adamw_`, `_foreach_norm`.
bool takes_parameter_lists(std::string_view entry);

/// Pairs the list elements of two calls that take lists of parameters (`_fused_adamw_`): elements about the
/// same parameter are partners. `partners`: by item of the target. Replaces pairs by position where the
/// parameters say otherwise.
void pair_lists(const dump::Side& target, const dump::Api& ours, const dump::Side& golden,
                const dump::Api& theirs, const Parameters& target_parameters,
                const Parameters& golden_parameters, std::vector<std::uint32_t>& partners);

}  // namespace msprobe::pairing
