// SPDX-License-Identifier: Apache-2.0
// Narrows gradients that automatic casting computed in a narrow type and handed on in float32, and
// references, which are computed in wider types.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "precheck/judgement/output.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::precheck {

/// Narrows tensors in float32 that hold only numbers of the narrow type, so that they are judged by the
/// precision in which they were computed. `storage` keeps their bytes.
void narrow_gradients(CallOutput& output, const std::optional<tensor::DType>& type,
                      std::vector<std::vector<std::byte>>& storage);

/// Rounds each element of a floating-point tensor to the type that the tensor has in `like`, if that is
/// narrower.
void round_like(CallOutput& output, const CallOutput& like, std::vector<std::vector<std::byte>>& storage);

}  // namespace msprobe::precheck
