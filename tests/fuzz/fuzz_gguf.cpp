// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "formats/gguf.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

namespace msprobe {
namespace {

void read_blocks(const formats::GgufFile& file) {
  constexpr std::size_t kMost = 50;
  for (std::size_t i = 0; i < file.size() && i < kMost; ++i) {
    if (file.type_name(i).empty()) __builtin_trap();
    unless_refused([&] {
      const formats::StoredTensor tensor = file.tensor(i);
      read_elements(tensor);
      const auto half_step = file.half_step(i);
      if (!half_step) return;
      if (half_step->shape != tensor.shape) __builtin_trap();
      read_elements(*half_step);
    });
  }
}

}  // namespace
}  // namespace msprobe

FUZZ_READER(gguf)(const std::uint8_t* data, std::size_t size) {
  msprobe::read_blocks(msprobe::formats::GgufFile(msprobe::fuzz_input(data, size)));
}
