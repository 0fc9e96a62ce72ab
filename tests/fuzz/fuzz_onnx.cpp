// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "formats/onnx.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(onnx)(const std::uint8_t* data, std::size_t size) {
  const auto input = msprobe::fuzz_input(data, size);
  // The file beside it has the same bytes.
  const auto beside = [&](const std::string&) { return input; };
  msprobe::formats::looks_like_onnx(*input);
  msprobe::read_tensors(msprobe::formats::OnnxModel(input, beside));
}
