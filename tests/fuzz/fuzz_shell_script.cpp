// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pack/shell_script.hpp"
#include "support/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    msprobe::pack::read_shell_script({reinterpret_cast<const char*>(data), size}, "run.sh");
  } catch (const msprobe::FormatError&) {
  }
  return 0;
}
