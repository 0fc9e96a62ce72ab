// SPDX-License-Identifier: Apache-2.0
// The archive: directory, names, limits, damaged members.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "pack/pack_reader.hpp"

FUZZ_READER(pack)(const std::uint8_t* data, std::size_t size) {
  const msprobe::pack::Pack pack(msprobe::fuzz_input(data, size),
                                 {.max_members = 1000, .max_member = 1 << 20, .max_total = 4 << 20});
  pack.verify();
}
