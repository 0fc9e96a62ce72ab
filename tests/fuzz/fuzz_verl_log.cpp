// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "config_check/verl_log.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(verl_log)(const std::uint8_t* data, std::size_t size) {
  const auto config = msprobe::config_check::read_verl_log(*msprobe::fuzz_input(data, size));
  const auto flat = msprobe::config_check::flatten_verl(config.value, "log");
  std::string json;
  msprobe::pack::append_json(json, config.value, 2);
  for (const auto& [path, value] : flat.items()) {
    msprobe::config_check::is_runtime_path(path);
    const auto* const found = flat.find(path);
    if (found == nullptr) throw std::logic_error("a path that is not found again");
    msprobe::config_check::equal_verl(*found, value);
  }
}
