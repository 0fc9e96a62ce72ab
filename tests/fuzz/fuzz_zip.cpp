// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "archive/zip_reader.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

FUZZ_READER(zip)(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kInflate = 1 << 20;
  const msprobe::archive::ZipReader zip(msprobe::fuzz_input(data, size));
  for (const auto& entry : zip.entries()) {
    if (zip.find(entry.name) != &entry) __builtin_trap();
    msprobe::unless_refused([&] {
      const auto content = zip.open(entry, kInflate);
      if (content->size() != entry.size) __builtin_trap();
      msprobe::read_all(*content, size + kInflate);
    });
  }
}
