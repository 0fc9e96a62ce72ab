// SPDX-License-Identifier: Apache-2.0
#include "formats/stored_tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "support/error.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"
#include "tensor/strided.hpp"

namespace msprobe::formats {
namespace {

using tensor::DTypeKind;

// A view whose elements have rising addresses is read through a window of this many bytes.
constexpr std::uint64_t kStridedWindow = std::uint64_t{1} << 20;

struct Axis {
  std::int64_t length;
  std::int64_t stride;  // in bytes
};

// The axes that affect the layout: axes of length 1 are dropped, contiguous neighbours merged. Rank 0 becomes
// no axis.
std::vector<Axis> simplify(const StoredTensor& tensor) {
  const auto item_size = static_cast<std::int64_t>(tensor::info(tensor.dtype).size);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 1) continue;
    const Axis axis{tensor.shape[i], tensor.strides[i] * item_size};
    if (!axes.empty() && axes.back().stride == axis.length * axis.stride) {
      axes.back() = {axes.back().length * axis.length, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

// The bytes from the first byte of the first element to the last byte of the last one.
std::uint64_t span_bytes(const std::vector<Axis>& axes, std::uint64_t item_size) {
  std::uint64_t span = item_size;
  for (const Axis& axis : axes) span += static_cast<std::uint64_t>((axis.length - 1) * axis.stride);
  return span;
}

// Does reading in logical order only move forward in the storage?
bool rises(const std::vector<Axis>& axes) {
  std::int64_t inner = 0;  // how far the axes inside reach
  for (std::size_t i = axes.size(); i-- > 0;) {
    if (axes[i].stride < inner) return false;
    inner += (axes[i].length - 1) * axes[i].stride;
  }
  return true;
}

std::uint64_t gather_memory(const std::vector<Axis>& axes, std::uint64_t item_size) {
  const std::uint64_t span = span_bytes(axes, item_size);
  return rises(axes) ? std::min(span, kStridedWindow) : span;
}

}  // namespace

std::int64_t StoredTensor::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t length : shape) product *= length;
  return product;
}

bool StoredTensor::is_contiguous() const {
  if (numel() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

std::optional<std::uint64_t> checked_size(const std::vector<std::int64_t>& shape, std::uint64_t element) {
  auto size = static_cast<std::int64_t>(element);
  bool empty = false;
  for (const std::int64_t length : shape) {
    empty = empty || length == 0;
    if (length < 0 || __builtin_mul_overflow(size, std::max<std::int64_t>(length, 1), &size)) return {};
  }
  return empty ? 0 : static_cast<std::uint64_t>(size);
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

struct ElementReader::Impl {
  StoredTensor tensor;
  std::size_t item_size = 0;
  std::int64_t total = 0;
  std::int64_t done = 0;
  std::vector<Axis> axes;             // empty if the elements are streamed
  std::vector<std::int64_t> counter;  // position along the axes
  std::uint64_t first_byte = 0;       // of element 0 in the storage
  std::uint64_t span = 0;
  std::vector<std::byte> window;
  std::uint64_t window_begin = 0;  // relative to first_byte
  std::uint64_t window_size = 0;

  void gather(std::span<std::byte> out);
  const std::byte* at(std::uint64_t relative, std::uint64_t length);
  void finish(std::span<std::byte> out) const;
};

// Returns `length` bytes at `relative` from the window, and moves the window there if necessary.
const std::byte* ElementReader::Impl::at(std::uint64_t relative, std::uint64_t length) {
  const bool present = relative >= window_begin && relative - window_begin <= window_size &&
                       length <= window_size - (relative - window_begin);
  if (!present) {
    window_begin = window.size() == span ? 0 : relative;
    window_size = std::min<std::uint64_t>(window.size(), span - window_begin);
    tensor.storage->read_at(first_byte + window_begin,
                            std::span(window).first(static_cast<std::size_t>(window_size)));
  }
  return window.data() + (relative - window_begin);
}

void ElementReader::Impl::gather(std::span<std::byte> out) {
  const Axis inner = axes.back();
  while (!out.empty()) {
    std::uint64_t relative = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
      relative += static_cast<std::uint64_t>(counter[i] * axes[i].stride);
    // As many elements of the innermost axis as are wanted and as fit the window.
    const auto wanted = static_cast<std::int64_t>(out.size() / item_size);
    std::int64_t count = std::min(wanted, inner.length - counter.back());
    if (inner.stride > 0) {
      const auto fit =
          static_cast<std::int64_t>((window.size() - item_size) / static_cast<std::size_t>(inner.stride)) + 1;
      count = std::min(count, fit);
    }
    const std::uint64_t reach = static_cast<std::uint64_t>((count - 1) * inner.stride) + item_size;
    const std::byte* source = at(relative, reach);
    const std::size_t length = static_cast<std::size_t>(count) * item_size;
    tensor::gather(source, inner.stride, item_size, static_cast<std::size_t>(count), out.data());
    out = out.subspan(length);
    counter.back() += count;
    for (std::size_t i = axes.size() - 1; i > 0 && counter[i] == axes[i].length; --i) {
      counter[i] = 0;
      ++counter[i - 1];
    }
  }
}

void ElementReader::Impl::finish(std::span<std::byte> out) const {
  const tensor::DTypeInfo& type = tensor::info(tensor.dtype);
  if (tensor.big_endian != (std::endian::native == std::endian::big)) tensor::swap_bytes(tensor.dtype, out);
  const std::size_t component = type.kind == DTypeKind::complex ? item_size / 2 : item_size;
  if (tensor.negative) tensor::flip_signs(out, component, 0, 1);
  if (tensor.conjugate) tensor::flip_signs(out, component, 1, 2);
}

ElementReader::ElementReader(const StoredTensor& tensor) : impl_(std::make_unique<Impl>()) {
  impl_->tensor = tensor;
  impl_->item_size = tensor::info(tensor.dtype).size;
  impl_->total = tensor.numel();
  impl_->first_byte = static_cast<std::uint64_t>(tensor.offset) * impl_->item_size;
  if (tensor.is_contiguous()) return;
  impl_->axes = simplify(tensor);
  impl_->counter.resize(impl_->axes.size());
  impl_->span = span_bytes(impl_->axes, impl_->item_size);
  const std::uint64_t memory = gather_memory(impl_->axes, impl_->item_size);
  if (memory > kMaxGather) {
    throw FormatError(
        display(tensor.storage->name()),
        fmt::format("refused: a permuted view over {} bytes; the limit is {}", memory, kMaxGather));
  }
  impl_->window.resize(static_cast<std::size_t>(memory));
}

ElementReader::~ElementReader() = default;

void ElementReader::read(std::span<std::byte> out) {
  if (out.size() % impl_->item_size != 0 ||
      out.size() / impl_->item_size > static_cast<std::uint64_t>(remaining())) {
    throw FormatError(display(impl_->tensor.storage->name()), "more elements requested than the tensor has");
  }
  if (out.empty()) return;
  if (impl_->axes.empty()) {
    const std::uint64_t position = static_cast<std::uint64_t>(impl_->done) * impl_->item_size;
    impl_->tensor.storage->read_at(impl_->first_byte + position, out);
  } else {
    impl_->gather(out);
  }
  impl_->done += static_cast<std::int64_t>(out.size() / impl_->item_size);
  impl_->finish(out);
}

std::int64_t ElementReader::remaining() const {
  return impl_->total - impl_->done;
}

std::uint64_t ElementReader::memory_need(const StoredTensor& tensor) {
  if (tensor.is_contiguous()) return 0;
  return gather_memory(simplify(tensor), tensor::info(tensor.dtype).size);
}

}  // namespace msprobe::formats
