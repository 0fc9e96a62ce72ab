// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz_target.hpp"
#include "pack/hyper_parameters.hpp"
#include "pack/several_values.hpp"
#include "pack/yaml.hpp"

FUZZ_READER(yaml)(const std::uint8_t* data, std::size_t size) {
  const auto value = msprobe::pack::read_yaml(
      {reinterpret_cast<const char*>(data), size}, "t.yaml",
      {.max_nodes = 10'000, .max_expanded = 20'000, .max_text = std::uint64_t{1} << 20});
  auto flat = msprobe::pack::flatten(value, "t.yaml");
  msprobe::pack::merge(flat, flat);
  std::string json;
  msprobe::pack::append_json(json, value, 4);
}
