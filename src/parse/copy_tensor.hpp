// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/stored_tensor.hpp"
#include "formats/tensor_writer.hpp"
#include "tensor/dtype.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::parse {

/// Feeds all elements to `writer`, which has begun a tensor of type `to` (formats::written_dtype), and gives
/// their statistics; of complex numbers those of their absolute values. Interrupted if the process was asked
/// to stop.
tensor::Statistics copy_tensor(const formats::StoredTensor& source, tensor::DType to,
                               formats::TensorWriter& writer);

}  // namespace msprobe::parse
