// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/safetensors.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "support/error.hpp"

namespace msprobe {
namespace {

void read_tensors(const formats::SafetensorsFile& set) {
  constexpr std::size_t kMost = 50;
  for (std::size_t i = 0; i < set.size() && i < kMost; ++i) {
    if (set.dtype_name(i).empty()) __builtin_trap();
    try {
      read_elements(set.tensor(i));
    } catch (const FormatError&) {
    }
  }
}

}  // namespace
}  // namespace msprobe

FUZZ_TARGET(safetensors)(const std::uint8_t* data, std::size_t size) {
  try {
    msprobe::read_tensors(msprobe::formats::SafetensorsFile(msprobe::fuzz_input(data, size)));
  } catch (const msprobe::FormatError&) {
  }
  return 0;
}
