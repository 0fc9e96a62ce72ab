// SPDX-License-Identifier: Apache-2.0
#include "formats/mindspore_ckpt.hpp"

#include <cstddef>
#include <cstdint>

#include "fuzz_elements.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_TARGET(mindspore_ckpt)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  const auto file = fuzz_input(data, size);
  formats::looks_like_mindspore_ckpt(*file);
  unless_refused([&] { read_tensors(formats::MindSporeCkpt(file)); });
}
