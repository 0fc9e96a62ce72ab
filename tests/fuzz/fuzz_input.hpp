// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe {

/// The bytes that an engine gives to a target, in the form that the readers take. FormatError is the only
/// exception that may come out of them; anything else ends the target.
inline std::shared_ptr<const ByteSource> fuzz_input(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  return memory_source(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

}  // namespace msprobe
