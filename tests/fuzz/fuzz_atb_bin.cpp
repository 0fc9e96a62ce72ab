// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/atb_bin.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(atb_bin)(const std::uint8_t* data, std::size_t size) {
  const auto file = msprobe::fuzz_input(data, size);
  // Each name that it refers to is the file itself: a link that may hold bytes, or lead round in circles.
  msprobe::read_elements(msprobe::formats::open_atb_bin(file, [&](const std::string&) { return file; }));
}
