// SPDX-License-Identifier: Apache-2.0
// Tables of free_benchmark, as compare takes them for a noise floor.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "diagnosis/noise_floor.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

namespace {

constexpr std::string_view kGolden =
    R"({"task": "statistics", "level": "L1", "data": {"Torch.matmul.0.forward": {
  "input_args": [{"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 8], "Max": 1, "Min": -1, "Mean": 0,
    "Norm": 5}], "input_kwargs": {},
  "output": [{"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 8], "Max": 1, "Min": -1, "Mean": 0,
    "Norm": 5}]}}})";

}  // namespace

FUZZ_READER(unstable_calls)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  static const dump::Side golden = [] {
    const auto bytes = std::as_bytes(std::span(kGolden));
    return dump::load_side(*memory_source(std::vector<std::byte>(bytes.begin(), bytes.end())));
  }();
  const auto floor = diagnosis::noise_of_unstable_calls(*fuzz_input(data, size), golden);
  for (std::uint32_t i = 0; i < golden.items.size(); ++i) {
    const diagnosis::Noise noise = (*floor)(i);
    if (!(noise.error >= 0 && noise.error <= 1) || !(noise.growth >= 0) || !(noise.element >= 0))
      throw std::logic_error("a noise that is none");
  }
}
