// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/safetensors.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(safetensors)(const std::uint8_t* data, std::size_t size) {
  const msprobe::formats::SafetensorsFile set(msprobe::fuzz_input(data, size));
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set.dtype_name(i).empty()) __builtin_trap();
  }
  msprobe::read_tensors(set);
}
