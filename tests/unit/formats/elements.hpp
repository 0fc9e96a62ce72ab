// SPDX-License-Identifier: Apache-2.0
// A tensor as a test sees it: its elements as hex.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {

/// The elements in logical order, read `piece` at a time, two hex digits a byte.
inline std::string element_hex(const StoredTensor& tensor, std::int64_t piece = 1000) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  ElementReader reader(tensor);
  while (reader.remaining() > 0) {
    const auto count = static_cast<std::size_t>(std::min(piece, reader.remaining()));
    std::vector<std::byte> bytes(count * tensor::info(tensor.dtype).size);
    reader.read(bytes);
    for (const std::byte b : bytes) {
      hex += kDigits[std::to_integer<std::size_t>(b >> 4)];
      hex += kDigits[std::to_integer<std::size_t>(b & std::byte{15})];
    }
  }
  return hex;
}

}  // namespace msprobe::formats
