// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/npz.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(npz)(const std::uint8_t* data, std::size_t size) {
  msprobe::read_tensors(msprobe::formats::NpzFile(msprobe::fuzz_input(data, size)));
}
