// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "formats/stored_tensor.hpp"
#include "fuzz_target.hpp"
#include "tensor/dtype.hpp"

namespace msprobe {

/// Reads the first elements of a tensor in two uneven pieces; a view may be far larger than the file it is
/// in.
inline void read_elements(const formats::StoredTensor& tensor) {
  constexpr std::int64_t kMost = 5000;
  formats::ElementReader reader(tensor);
  if (reader.remaining() != tensor.numel()) __builtin_trap();
  const std::size_t size = tensor::info(tensor.dtype).size;
  for (int piece = 0; piece < 2; ++piece) {
    const auto count = static_cast<std::size_t>(std::min(reader.remaining(), piece == 0 ? 3 : kMost));
    std::vector<std::byte> out(count * size);
    reader.read(out);
  }
}

/// Reads the first tensors of a file, each of which may be refused.
template <typename Set>
void read_tensors(const Set& set) {
  constexpr std::size_t kMost = 50;
  for (std::size_t i = 0; i < std::min(set.size(), kMost); ++i)
    unless_refused([&] { read_elements(set.tensor(i)); });
}

}  // namespace msprobe
