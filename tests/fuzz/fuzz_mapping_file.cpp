// SPDX-License-Identifier: Apache-2.0
// A hostile mapping file, as each of the mappings; names are put through what could be read.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "pairing/mapping_file.hpp"
#include "pairing/names.hpp"
#include "support/log.hpp"

namespace msprobe {
namespace {

void use_names(const ByteSource& file) {
  const pairing::NameMapping mapping = pairing::read_name_mapping(file);
  std::string again;
  for (const auto& [from, to] : mapping.entries()) pairing::append_mapping_line(again, from, to);
  const pairing::NameMapping back = pairing::read_name_mapping(*memory_source(again));
  if (back.entries() != mapping.entries())
    throw std::logic_error("a mapping that does not come back as it was");
  pairing::CellNames(mapping, "t.yaml")("Cell.fc1.fc2.Dense.forward.0");
}

}  // namespace

FUZZ_TARGET(mapping_file)(const std::uint8_t* data, std::size_t size) {
  set_log_level(LogLevel::quiet);
  const auto file = fuzz_input(data, size);
  unless_refused([&] { use_names(*file); });
  unless_refused([&] { pairing::read_api_mapping(*file); });
  unless_refused([&] { pairing::read_layer_mapping(*file); });
}

}  // namespace msprobe
