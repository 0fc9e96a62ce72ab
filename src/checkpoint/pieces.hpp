// SPDX-License-Identifier: Apache-2.0
// Two parameters read side by side, a few thousand elements at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "checkpoint/metrics.hpp"
#include "checkpoint/parameter.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "tensor/difference.hpp"
#include "tensor/dtype.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::checkpoint {

/// Elements per step: the raw and converted pieces of both sides stay in the second-level cache.
inline constexpr std::size_t kPiece = std::size_t{16} << 10;

inline bool is_complex(tensor::DType dtype) {
  return tensor::info(dtype).kind == tensor::DTypeKind::complex;
}
inline bool is_floating(tensor::DType dtype) {
  return tensor::info(dtype).kind == tensor::DTypeKind::floating;
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

/// Calls `take(x, y)` for each pair of elements, as double.
template <typename Take>
void each_pair(const Parameter& first, const Parameter& second, const Take& take) {
  each_piece<double>(first, second, {}, [&](auto x, auto y, auto, auto) {
    for (std::size_t i = 0; i < x.size(); ++i) take(x[i], y[i]);
  });
}

/// Bytes per step where elements need no decoding.
inline constexpr std::size_t kRawPiece = std::size_t{64} << 10;

/// The same for stored bytes of parameters of one type; continues while `take` returns true. If `is_one` says
/// that both are the same bytes of a file, they are read once.
template <typename Take>
void each_raw_piece(const Parameter& first, const Parameter& second, bool is_one,
                    const MeasureOptions& options, Take take) {
  const std::size_t size = tensor::info(first.dtype).size;
  ParameterReader a(first);
  ParameterReader b(second);
  if (a.remaining() != b.remaining()) throw std::logic_error("parameters of different sizes");
  std::vector<std::byte> x(
      std::min<std::uint64_t>(kRawPiece, static_cast<std::uint64_t>(a.remaining()) * size));
  std::vector<std::byte> y(is_one ? 0 : x.size());
  bool goes_on = true;
  while (goes_on && a.remaining() > 0) {
    check_interrupt();
    const std::size_t count = std::min(x.size(), static_cast<std::size_t>(a.remaining()) * size);
    const std::span<std::byte> ours = std::span(x).first(count);
    const std::span<std::byte> theirs = is_one ? ours : std::span(y).first(count);
    a.read(ours);
    if (!is_one) b.read(theirs);
    goes_on = take(ours, theirs);
    if (options.on_bytes) options.on_bytes(2 * count);
  }
}

/// The result of `read`; an empty value if a parameter cannot be read, which the comparison of pairs reports.
template <typename Read>
auto if_readable(const Read& read) -> decltype(read()) {
  try {
    return read();
  } catch (const Error&) {
    return {};
  }
}

/// Calls `body` with a value of the type in which both sides are computed.
template <typename Body>
auto with_work_type(const Parameter& first, const Parameter& second, Body body) {
  return tensor::with_type(tensor::work_of(first.dtype, second.dtype), body);
}

}  // namespace msprobe::checkpoint
