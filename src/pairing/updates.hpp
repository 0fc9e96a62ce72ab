// SPDX-License-Identifier: Apache-2.0
// Which parameter a call of an optimizer is about: those of two runs pair by parameter, in whatever order and
// number each run has them.
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

/// The parameters of a side's modules, known by what is in them and in their gradients.
class Parameters {
 public:
  explicit Parameters(const dump::Side& side);

  /// A hash of its name, as the model has it; 0 if it is none, or if several look like it.
  std::uint64_t of(const dump::Item& item) const;
  bool empty() const { return names_.empty(); }
  /// What a tensor is known by: a hash of its shape and statistics; 0 for constants, and without statistics.
  std::uint64_t content(const dump::Item& item) const;

 private:
  void add(const dump::Item& item, std::uint64_t name);

  const dump::Side& side_;
  std::unordered_map<std::uint64_t, std::uint64_t> names_;  // by content; 0: of several
};

/// Calls of two optimizers that are about one parameter.
struct UpdatePairs {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // target and golden
  /// By entry: calls for parameters that the other side has not.
  std::vector<bool> target_alone;
  std::vector<bool> golden_alone;
};

/// Nothing if both sides go through the same parameters in the same order, or if no parameter of a side is
/// known.
std::optional<UpdatePairs> pair_updates(const dump::Side& target,
                                        const dump::ConstructTable& target_construct,
                                        const dump::Side& golden,
                                        const dump::ConstructTable& golden_construct);

/// `_fused_adamw_`, `_foreach_norm`.
bool takes_parameter_lists(std::string_view entry);

/// Two calls that take lists of parameters (`_fused_adamw_`): the elements of lists that are of one
/// parameter. `partners`: by item under test; what was paired by position is replaced where parameters tell
/// otherwise.
void pair_lists(const dump::Side& target, const dump::Api& ours, const dump::Side& golden,
                const dump::Api& theirs, const Parameters& target_parameters,
                const Parameters& golden_parameters, std::vector<std::uint32_t>& partners);

}  // namespace msprobe::pairing
