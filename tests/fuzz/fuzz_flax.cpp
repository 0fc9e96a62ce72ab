// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/flax.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "support/error.hpp"

namespace msprobe {
namespace {

void read_tensors(const formats::FlaxFile& file) {
  constexpr std::size_t kMost = 50;
  for (std::size_t i = 0; i < file.size() && i < kMost; ++i) {
    try {
      read_elements(file.tensor(i));
    } catch (const FormatError&) {
    }
  }
}

}  // namespace
}  // namespace msprobe

FUZZ_TARGET(flax)(const std::uint8_t* data, std::size_t size) {
  const auto input = msprobe::fuzz_input(data, size);
  try {
    msprobe::formats::looks_like_flax(*input);
    msprobe::read_tensors(msprobe::formats::FlaxFile(input));
  } catch (const msprobe::FormatError&) {
  }
  return 0;
}
