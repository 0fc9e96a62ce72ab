// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_view.hpp"

#include "tensor/strided.hpp"

namespace msprobe::collector {
namespace {

/// Merges axes that are contiguous in memory, from the innermost out.
void merge(VisitOrder& walk) {
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

VisitOrder walk_in_order(const TensorView& view) {
  VisitOrder walk;
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

VisitOrder walk_in_memory(const TensorView& view) {
  VisitOrder walk;
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

void resolve_signs(const TensorView& view, std::span<std::byte> elements) {
  const tensor::DTypeInfo& type = tensor::info(view.dtype);
  if (type.kind == tensor::DTypeKind::complex) {
    const std::size_t component = type.size / 2;
    // If both apply, the sign of the imaginary part stays.
    if (view.negative) tensor::flip_signs(elements, component, 0, 2);
    if (view.negative != view.conjugate) tensor::flip_signs(elements, component, 1, 2);
  } else if (view.negative && type.kind == tensor::DTypeKind::floating) {
    tensor::flip_signs(elements, type.size, 0, 1);
  }
}

}  // namespace msprobe::collector
