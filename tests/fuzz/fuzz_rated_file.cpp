// SPDX-License-Identifier: Apache-2.0
// The rating of a file below a folder by `inspect --fail-on`: of any bytes at all.
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
  // The name of a text decides which of these it is read as.
  if (!facts.file) __builtin_trap();
  for (const char* name : {"config.json", "a.jsonl", "config.yaml", "README.md", "a.conf"})
    msprobe::inspect::rate_text(*source, name);
  msprobe::inspect::rate_template({reinterpret_cast<const char*>(data), size});
}
