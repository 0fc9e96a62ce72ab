// SPDX-License-Identifier: Apache-2.0
// Two parameters read side by side, a few thousand elements at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "checkpoint/metrics.hpp"
#include "checkpoint/parameter.hpp"
#include "support/interrupt.hpp"
#include "tensor/difference.hpp"
#include "tensor/dtype.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::checkpoint {

/// Elements a step: both sides' raw and converted pieces stay in the second-level cache.
inline constexpr std::size_t kPiece = std::size_t{16} << 10;

inline bool is_complex(tensor::DType dtype) {
  return tensor::info(dtype).kind == tensor::Kind::complex;
}

/// Calls `take(first, second, stored_first, stored_second)` for each pair of pieces.
template <typename T, typename Take>
void each_piece(const Parameter& first, const Parameter& second, const MeasureOptions& options, Take take) {
  using Feed = tensor::ElementFeed<T, ParameterReader>;
  const bool any_complex = is_complex(first.dtype) || is_complex(second.dtype);
  const tensor::Parts parts = any_complex ? tensor::Parts::complex : tensor::Parts::as_stored;
  Feed a(first, parts);
  Feed b(second, parts);
  if (a.remaining() != b.remaining()) throw std::logic_error("parameters of different sizes");
  while (a.remaining() > 0) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(a.remaining(), kPiece));
    const std::span<const T> x = a.next(count);
    const std::span<const T> y = b.next(count);
    take(x, y, a.stored(), b.stored());
    if (options.on_bytes) options.on_bytes(a.bytes(count) + b.bytes(count));
  }
}

/// Calls `body` with a value of the type in which both are computed with.
template <typename Body>
auto with_work_type(const Parameter& first, const Parameter& second, Body body) {
  return tensor::with_type(tensor::work_of(first.dtype, second.dtype), body);
}

}  // namespace msprobe::checkpoint
