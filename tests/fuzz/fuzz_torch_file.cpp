// SPDX-License-Identifier: Apache-2.0
// Both ways in: the file of one tensor, and a file of anything whose tensors are asked for one by one.
#include "formats/torch_file.hpp"

#include <cstddef>
#include <cstdint>

#include "formats/tensor_file.hpp"
#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(torch_file)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  const auto file = fuzz_input(data, size);
  unless_refused([&] { read_elements(formats::open_tensor(file)); });
  const formats::TorchFile torch(file, {.max_bytes = 1 << 20, .max_opcodes = 100'000, .max_stack = 10'000});
  for (std::uint32_t i = 0; i < torch.pickle().size(); ++i) {
    const formats::PickleRef ref{i};
    if (!torch.is_tensor(ref)) continue;
    unless_refused([&] { read_elements(torch.tensor(ref)); });
  }
}
