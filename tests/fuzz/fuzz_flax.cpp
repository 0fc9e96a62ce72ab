// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/flax.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(flax)(const std::uint8_t* data, std::size_t size) {
  const auto input = msprobe::fuzz_input(data, size);
  msprobe::formats::looks_like_flax(*input);
  msprobe::read_tensors(msprobe::formats::FlaxFile(input));
}
