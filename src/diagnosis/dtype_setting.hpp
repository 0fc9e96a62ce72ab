// SPDX-License-Identifier: Apache-2.0
// A run that computes in another floating type than golden: that is a setting of the run, not a difference of
// its calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::diagnosis {

struct DtypeSetting {
  std::string_view target;  // `torch.float16`, in the text of its side
  std::string_view golden;
  std::uint64_t tensors = 0;   // pairs with these two types
  std::uint64_t floating = 0;  // all pairs of floating tensors
  bool by_products =
      false;  // counted over the outputs of matrix products and convolutions only: automatic casting
  bool by_parameters =
      false;  // counted over the parameters only: weights that the optimizer updates in that type

  bool is(std::string_view target_dtype, std::string_view golden_dtype) const {
    return target == target_dtype && golden == golden_dtype;
  }
};

/// The largest or the smallest number of a type, as torch.finfo() has it.
bool is_extreme(double value, std::string_view dtype);

/// The pair of floating types that at least kHalf of the pairs of floating tensors have, or else
/// kNearlyAll of the outputs of products, or of the parameters. Nothing if no pair is that
/// frequent, or if its two types are the same. `golden_item`: by item of the target, or kNone.
std::optional<DtypeSetting> dtype_setting(const dump::Side& target, const dump::Side& golden,
                                          const std::vector<std::uint32_t>& golden_item);

}  // namespace msprobe::diagnosis
