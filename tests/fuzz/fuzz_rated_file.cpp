// SPDX-License-Identifier: Apache-2.0
// What `inspect --fail-on` says of a file below a folder: of any bytes at all.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "inspect/facts.hpp"
#include "inspect/text_rating.hpp"
#include "support/error.hpp"

FUZZ_TARGET(rated_file)(const std::uint8_t* data, std::size_t size) {
  const auto source = msprobe::fuzz_input(data, size);
  msprobe::inspect::PathFacts facts;
  try {
    msprobe::inspect::rate_file(source, facts);
  } catch (const msprobe::Error&) {
  }
  // What no loader could take for anything but text may still configure one.
  if (!facts.file) __builtin_trap();
  msprobe::inspect::rate_text(*source, "config.json", "");
}
