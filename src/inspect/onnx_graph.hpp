// SPDX-License-Identifier: Apache-2.0
// ONNX models, followed message by message as onnx.proto describes them.
#pragma once

#include <string>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// What a model has that is no data and no operator of ONNX or ONNX Runtime: fields that are not known,
/// operators that other programs define or that run Python, elements in files elsewhere. Empty where it has
/// nothing.
std::string onnx_surplus(const ByteSource& file);

}  // namespace msprobe::inspect
