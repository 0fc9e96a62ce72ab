// SPDX-License-Identifier: Apache-2.0
// Quantized weights in a safetensors file: what belongs together, and what it stands for.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "checkpoint/loaders.hpp"
#include "checkpoint/quantized_forms.hpp"
#include "checkpoint/step_check.hpp"
#include "formats/tensor_set.hpp"
#include "fuzz_target.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"

FUZZ_TARGET(quantized)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  try {
    const std::shared_ptr<const formats::TensorSet> set =
        formats::open_tensors(memory_source(std::string_view(reinterpret_cast<const char*>(data), size)));
    checkpoint::Checkpoint first;
    for (std::size_t i = 0; i < set->size(); ++i)
      first.entries.push_back(checkpoint::entry_of(set, i, set->name(i)));
    checkpoint::Checkpoint second;
    checkpoint::dequantize(first, second);
    for (const checkpoint::CheckpointEntry& entry : first.entries) {
      const checkpoint::Parameter& parameter = entry.parameter;
      if (!entry.problem.empty() || parameter.half_step == nullptr) continue;
      checkpoint::check_steps(parameter, parameter);
      if (parameter.shape[0] > 1) {
        const checkpoint::Parameter part = checkpoint::narrow(parameter, 0, 1, parameter.shape[0] - 1);
        checkpoint::check_steps(part, part);
      }
    }
  } catch (const Error&) {
    // Refused.
  }
}
