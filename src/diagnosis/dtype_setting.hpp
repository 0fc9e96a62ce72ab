// SPDX-License-Identifier: Apache-2.0
// A run that computes in another floating type than golden: a setting, and no difference of the calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "diagnosis/imports.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

struct DtypeSetting {
  std::string_view target;  // `torch.float16`, in the text of its side
  std::string_view golden;
  std::uint64_t tensors = 0;   // that differ so
  std::uint64_t floating = 0;  // of so many pairs of floating tensors
  bool by_products =
      false;  // these are what products of matrices and convolutions put out: automatic casting

  bool is(std::string_view target_dtype, std::string_view golden_dtype) const {
    return target == target_dtype && golden == golden_dtype;
  }
};

/// The largest or the smallest number of a type, as torch.finfo() has it.
bool is_extreme(double value, std::string_view dtype);

/// The pair of floating types that at least kMostInOtherDtype of the pairs of floating tensors have, or
/// kMostProductsInOtherDtype of those that products put out; nothing if there is none, or if both are one
/// type. `golden_item`: by item of the target, or kNone.
std::optional<DtypeSetting> dtype_setting(const dump::Side& target, const dump::Side& golden,
                                          const std::vector<std::uint32_t>& golden_item);

}  // namespace msprobe::diagnosis
