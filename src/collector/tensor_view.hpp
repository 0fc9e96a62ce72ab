// SPDX-License-Identifier: Apache-2.0
// Views of elements in the caller's memory, with any strides, and the ways to walk over them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.hpp"
#include "tensor/strided.hpp"

namespace msprobe::collector {

inline constexpr std::size_t kMaxRank = 64;

struct TensorView {
  const std::byte* data = nullptr;
  tensor::DType dtype = tensor::DType::float32;
  std::uint32_t rank = 0;
  std::uint64_t count = 0;  // of elements
  bool conjugate = false;
  bool negative = false;
  std::array<std::int64_t, kMaxRank> shape;    // `rank` of them
  std::array<std::int64_t, kMaxRank> strides;  // in elements

  std::size_t element_size() const { return tensor::info(dtype).size; }
  std::uint64_t bytes() const { return count * element_size(); }
  std::vector<std::int64_t> lengths() const { return {shape.begin(), shape.begin() + rank}; }
  /// True if the bytes at `data` are the elements themselves, in row-major order without gaps.
  bool plain() const;
};

/// An order in which to visit elements: axes from the innermost out, none of length 1, merged if possible.
struct VisitOrder {
  const std::byte* data = nullptr;
  std::size_t rank = 0;
  std::uint64_t repetitions = 1;  // how often each element counts
  std::array<std::int64_t, kMaxRank> length;
  std::array<std::int64_t, kMaxRank> stride;  // in elements

  std::int64_t inner_length() const { return rank == 0 ? 1 : length[0]; }
  std::int64_t inner_stride() const { return rank == 0 ? 1 : stride[0]; }

  /// Calls run(first element) for each run of inner_length() elements that are inner_stride() apart.
  template <typename Run>
  void each_run(std::size_t element_size, Run run) const {
    std::array<std::int64_t, kMaxRank> index;
    for (std::size_t axis = 0; axis < rank; ++axis) index[axis] = 0;
    const auto size = static_cast<std::int64_t>(element_size);
    const std::byte* at = data;
    for (;;) {
      run(at);
      std::size_t axis = 1;
      for (; axis < rank; ++axis) {
        if (++index[axis] < length[axis]) {
          at += stride[axis] * size;
          break;
        }
        at -= stride[axis] * (length[axis] - 1) * size;
        index[axis] = 0;
      }
      if (axis >= rank) return;
    }
  }
};

/// All elements in row-major order. The view must not be empty.
VisitOrder walk_in_order(const TensorView& view);
/// All elements in the fastest order: that of memory, with repeated ones once.
VisitOrder walk_in_memory(const TensorView& view);

/// Changes the bytes to the elements' real values: other signs for negative and conjugate views.
void resolve_signs(const TensorView& view, std::span<std::byte> elements);

/// Calls piece(bytes) with all elements in row-major order, signs resolved, in pieces of whole elements.
template <typename Piece>
void each_piece(const TensorView& view, Piece piece) {
  if (view.count == 0) return;
  if (view.plain()) {
    piece(std::span<const std::byte>(view.data, static_cast<std::size_t>(view.bytes())));
    return;
  }
  constexpr std::size_t kBuffer = 16384;
  alignas(64) std::array<std::byte, kBuffer> buffer;
  const std::size_t size = view.element_size();
  const std::size_t room = kBuffer / size;
  std::size_t held = 0;  // elements
  const auto hand_over = [&] {
    const std::span<std::byte> bytes(buffer.data(), held * size);
    resolve_signs(view, bytes);
    piece(std::span<const std::byte>(bytes));
    held = 0;
  };
  const VisitOrder walk = walk_in_order(view);
  const auto step = walk.inner_stride() * static_cast<std::int64_t>(size);
  walk.each_run(size, [&](const std::byte* from) {
    for (auto left = static_cast<std::size_t>(walk.inner_length()); left > 0;) {
      const std::size_t taken = left < room - held ? left : room - held;
      tensor::gather(from, step, size, taken, buffer.data() + held * size);
      left -= taken;
      if (left > 0) from += step * static_cast<std::int64_t>(taken);
      held += taken;
      if (held == room) hand_over();
    }
  });
  if (held > 0) hand_over();
}

}  // namespace msprobe::collector
