// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_target.hpp"
#include "pack/shell_script.hpp"

FUZZ_READER(shell_script)(const std::uint8_t* data, std::size_t size) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  msprobe::pack::options_of(msprobe::pack::read_script(script, "run.sh"));
}
