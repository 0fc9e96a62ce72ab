// SPDX-License-Identifier: Apache-2.0
// What `inspect --fail-on` says of a file below a folder: of any bytes at all.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "inspect/facts.hpp"
#include "inspect/plain_text.hpp"
#include "inspect/template_rating.hpp"
#include "support/error.hpp"

FUZZ_TARGET(rated_file)(const std::uint8_t* data, std::size_t size) {
  const auto source = msprobe::fuzz_input(data, size);
  msprobe::inspect::PathFacts facts;
  try {
    msprobe::inspect::rate_file(source, facts);
  } catch (const msprobe::Error&) {
  }
  // By its name a text is read as one of these.
  if (!facts.file) __builtin_trap();
  for (const char* name : {"config.json", "a.jsonl", "config.yaml", "README.md", "a.conf"})
    msprobe::inspect::rate_text(*source, name);
  msprobe::inspect::rate_template({reinterpret_cast<const char*>(data), size});
}
