// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "dump/stack_json.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(stack_json)(const std::uint8_t* data, std::size_t size) {
  const auto table = msprobe::dump::read_stack_json(*msprobe::fuzz_input(data, size));
  std::size_t bytes = 0;
  if (const auto* frames = table.find("Torch.a.0.forward")) {
    for (const std::string& frame : *frames) bytes += frame.size();
  }
  if (bytes > size) throw std::logic_error("frames longer than the file");
}
