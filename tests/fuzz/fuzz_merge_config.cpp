// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "fuzz_target.hpp"
#include "merge_result/config.hpp"

FUZZ_READER(merge_config)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (msprobe::merge_result::parse_config(text, "config.yaml").apis.empty())
    throw std::logic_error("a configuration without apis");
}
