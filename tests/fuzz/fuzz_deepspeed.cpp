// SPDX-License-Identifier: Apache-2.0
// Folders of DeepSpeed. The first byte chooses the stage: of 1 one file has the model, of 3 each rank has a
// file of the model and one of the optimizer, these behind those.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz_checkpoint.hpp"
#include "fuzz_target.hpp"

FUZZ_TARGET(deepspeed)(const std::uint8_t* data, std::size_t size) {
  static const msprobe::FuzzFolder folder;
  if (size == 0) return;
  folder.clear();
  const bool stage_three = data[0] % 2 == 1;
  const auto files = msprobe::files_of(data + 1, size - 1);
  const std::size_t models = stage_three ? (files.size() + 1) / 2 : 1;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_model = i < models;
    const std::string rank = "zero_pp_rank_" + std::to_string(is_model ? i : i - models) + "_";
    folder.add((stage_three ? rank
                : is_model  ? ""
                            : "bf16_" + rank) +
                   "mp_rank_00_" + (is_model ? "model" : "optim") + "_states.pt",
               files[i]);
  }
  msprobe::read_checkpoint(folder.path());
}
