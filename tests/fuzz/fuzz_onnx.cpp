// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "formats/onnx.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "support/error.hpp"

namespace msprobe {
namespace {

void read_tensors(const formats::OnnxModel& model) {
  constexpr std::size_t kMost = 50;
  for (std::size_t i = 0; i < model.size() && i < kMost; ++i) {
    try {
      read_elements(model.tensor(i));
    } catch (const FormatError&) {
    }
  }
}

}  // namespace
}  // namespace msprobe

FUZZ_TARGET(onnx)(const std::uint8_t* data, std::size_t size) {
  const auto input = msprobe::fuzz_input(data, size);
  // The file beside it has the same bytes.
  const auto beside = [&](const std::string&) { return input; };
  try {
    msprobe::formats::looks_like_onnx(*input);
    msprobe::read_tensors(msprobe::formats::OnnxModel(input, beside));
  } catch (const msprobe::FormatError&) {
  }
  return 0;
}
