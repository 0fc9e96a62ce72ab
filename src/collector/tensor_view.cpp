// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_view.hpp"

#include <cstring>

namespace msprobe::collector {
namespace {

/// Merges axes that lie behind one another in memory, from the innermost out.
void merge(Walk& walk) {
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < walk.rank; ++axis) {
    if (kept > 0 && walk.stride[axis] == walk.stride[kept - 1] * walk.length[kept - 1]) {
      walk.length[kept - 1] *= walk.length[axis];
      continue;
    }
    walk.length[kept] = walk.length[axis];
    walk.stride[kept] = walk.stride[axis];
    ++kept;
  }
  walk.rank = kept;
}

template <std::size_t Size>
void gather_fixed(const std::byte* from, std::int64_t step, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to + i * Size, from, Size);
    // The step past the last element may leave the memory: never formed.
    if (i + 1 < count) from += step;
  }
}

template <typename Word>
void flip(std::span<std::byte> bytes, std::size_t first, std::size_t step) {
  constexpr auto kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  for (std::size_t at = first * sizeof(Word); at + sizeof(Word) <= bytes.size(); at += step * sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word = static_cast<Word>(word ^ kSign);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

/// Of every `step`-th component from `first` on.
void flip_signs(std::span<std::byte> bytes, std::size_t component, std::size_t first, std::size_t step) {
  if (component == 1) return flip<std::uint8_t>(bytes, first, step);
  if (component == 2) return flip<std::uint16_t>(bytes, first, step);
  if (component == 4) return flip<std::uint32_t>(bytes, first, step);
  return flip<std::uint64_t>(bytes, first, step);
}

}  // namespace

bool TensorView::plain() const {
  if (negative || conjugate) return false;
  std::int64_t expected = 1;
  for (std::size_t axis = rank; axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (strides[axis] != expected) return count == 0;
    expected *= shape[axis];
  }
  return true;
}

Walk walk_in_order(const TensorView& view) {
  Walk walk;
  walk.data = view.data;
  for (std::size_t axis = view.rank; axis-- > 0;) {
    if (view.shape[axis] == 1) continue;
    walk.length[walk.rank] = view.shape[axis];
    walk.stride[walk.rank] = view.strides[axis];
    ++walk.rank;
  }
  merge(walk);
  return walk;
}

Walk walk_in_memory(const TensorView& view) {
  Walk walk;
  walk.data = view.data;
  const auto size = static_cast<std::int64_t>(view.element_size());
  for (std::size_t axis = view.rank; axis-- > 0;) {
    const std::int64_t length = view.shape[axis];
    std::int64_t stride = view.strides[axis];
    if (length == 1) continue;
    if (stride == 0) {
      walk.repetitions *= static_cast<std::uint64_t>(length);
      continue;
    }
    if (stride < 0) {
      walk.data += stride * (length - 1) * size;
      stride = -stride;
    }
    std::size_t place = walk.rank++;
    for (; place > 0 && walk.stride[place - 1] > stride; --place) {
      walk.stride[place] = walk.stride[place - 1];
      walk.length[place] = walk.length[place - 1];
    }
    walk.stride[place] = stride;
    walk.length[place] = length;
  }
  merge(walk);
  return walk;
}

void gather(const std::byte* from, std::int64_t stride, std::size_t size, std::size_t count, std::byte* to) {
  if (stride == 1) {
    std::memcpy(to, from, count * size);
    return;
  }
  const std::int64_t step = stride * static_cast<std::int64_t>(size);
  switch (size) {
    case 1:
      return gather_fixed<1>(from, step, count, to);
    case 2:
      return gather_fixed<2>(from, step, count, to);
    case 4:
      return gather_fixed<4>(from, step, count, to);
    case 8:
      return gather_fixed<8>(from, step, count, to);
    default:
      return gather_fixed<16>(from, step, count, to);
  }
}

void resolve_signs(const TensorView& view, std::span<std::byte> elements) {
  const tensor::DTypeInfo& type = tensor::info(view.dtype);
  if (type.kind == tensor::Kind::complex) {
    const std::size_t component = type.size / 2;
    // Both at once leave the sign of the imaginary part alone.
    if (view.negative) flip_signs(elements, component, 0, 2);
    if (view.negative != view.conjugate) flip_signs(elements, component, 1, 2);
  } else if (view.negative && type.kind == tensor::Kind::floating) {
    flip_signs(elements, type.size, 0, 1);
  }
}

}  // namespace msprobe::collector
