// SPDX-License-Identifier: Apache-2.0
// Checks ONNX models, message by message, against onnx.proto.
#pragma once

#include <string>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// A description of content that is neither data nor an operator of ONNX or ONNX Runtime: unknown fields,
/// operators that other programs define or that run Python, elements in files elsewhere. Empty if there is no
/// such content.
std::string onnx_surplus(const ByteSource& file);

}  // namespace msprobe::inspect
