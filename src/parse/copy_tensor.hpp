// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/stored_tensor.hpp"
#include "formats/tensor_writer.hpp"
#include "tensor/dtype.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::parse {

/// Writes all elements to `writer`, which has begun a tensor of type `to` (formats::written_dtype), and
/// returns their statistics; for complex numbers those of their absolute values. Interrupted if the process
/// was asked to stop.
tensor::Statistics copy_tensor(const formats::StoredTensor& source, tensor::DType to,
                               formats::TensorWriter& writer);

}  // namespace msprobe::parse
