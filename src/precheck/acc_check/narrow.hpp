// SPDX-License-Identifier: Apache-2.0
// Gradients that automatic casts made in a narrow type and handed on in float32, and references, which are
// computed in wider types.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "precheck/judgement/output.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::precheck {

/// Tensors in float32 that hold nothing but numbers of the narrow type become such, so that they are judged
/// by the precision that they were computed in. Their bytes are kept in `storage`.
void narrow_gradients(Output& output, const std::optional<tensor::DType>& type,
                      std::vector<std::vector<std::byte>>& storage);

/// Tensors of floating-point numbers become of the types that they have in `like`, if these are narrower:
/// each element is rounded.
void round_like(Output& output, const Output& like, std::vector<std::vector<std::byte>>& storage);

}  // namespace msprobe::precheck
