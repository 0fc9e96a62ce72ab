// SPDX-License-Identifier: Apache-2.0
#include "formats/joined_tensor.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "support/error.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::formats {
namespace {

/// The bytes of contiguous tensors, interleaved: one stretch of each tensor in turn.
class InterleavedSource final : public ByteSource {
 public:
  struct InterleavedPart {
    std::shared_ptr<const ByteSource> bytes;
    std::uint64_t begin = 0;
    std::uint64_t stretch = 0;
    std::uint64_t period = 0;  // from one stretch to the next
  };

  InterleavedSource(std::vector<InterleavedPart> parts, std::uint64_t turns, std::string name)
      : parts_(std::move(parts)), turns_(turns), name_(std::move(name)) {
    for (const InterleavedPart& part : parts_) ends_.push_back(turn_ += part.stretch);
  }

  std::uint64_t size() const override { return turn_ * turns_; }
  const std::string& name() const override { return name_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size(), name_);
    while (!out.empty()) {
      const std::uint64_t turn = offset / turn_;
      const auto end = std::ranges::upper_bound(ends_, offset % turn_);
      const InterleavedPart& part = parts_[static_cast<std::size_t>(end - ends_.begin())];
      const std::uint64_t left = *end - offset % turn_;
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size()));
      part.bytes->read_at(part.begin + turn * part.period + part.stretch - left, out.first(length));
      out = out.subspan(length);
      offset += length;
    }
  }

 private:
  std::vector<InterleavedPart> parts_;
  std::uint64_t turns_;
  std::uint64_t turn_ = 0;           // bytes of one stretch of every part
  std::vector<std::uint64_t> ends_;  // of the stretches in a turn
  std::string name_;
};

/// Returns the tensor as one contiguous block in the machine's byte order. If that needs a copy in memory,
/// its size is subtracted from `left`.
StoredTensor in_one_piece(const StoredTensor& tensor, std::uint64_t& left) {
  const tensor::DTypeInfo& info = tensor::info(tensor.dtype);
  if (tensor.is_contiguous() && !tensor.big_endian && !tensor.conjugate && !tensor.negative) return tensor;
  const auto count = static_cast<std::uint64_t>(tensor.numel());
  if (count > left / info.size) {
    throw FormatError(display(tensor.storage->name()), "too large to be joined: it is not contiguous");
  }
  left -= count * info.size;
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * info.size);
  ElementReader(tensor).read(bytes);
  StoredTensor copy;
  copy.dtype = tensor.dtype;
  copy.shape = tensor.shape;
  copy.strides = row_major_strides(copy.shape);
  copy.storage = memory_source(std::move(bytes), tensor.storage->name());
  return copy;
}

std::vector<std::int64_t> squeezed(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](std::int64_t n) { return n != 1; });
  // A tensor of one element gets an axis of length 1, so that several can be joined to a list.
  if (out.empty()) out.push_back(1);
  return out;
}

/// Joins the tensors as if they had the axes of `shapes`.
StoredTensor joined_along(const std::vector<StoredTensor>& parts,
                          const std::vector<std::vector<std::int64_t>>& shapes, std::size_t axis,
                          std::size_t chunks) {
  const std::string name = parts.front().storage->name() + " and others";
  StoredTensor joined;
  joined.dtype = parts.front().dtype;
  joined.shape = shapes.front();
  joined.shape[axis] = 0;
  const auto size = static_cast<std::uint64_t>(tensor::info(joined.dtype).size);
  std::vector<InterleavedSource::InterleavedPart> sources;
  std::uint64_t turns = 1;
  std::uint64_t left = ElementReader::kMaxGather;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::int64_t> shape = shapes[i];
    if (parts[i].dtype != joined.dtype)
      throw FormatError(display(name), "cannot be joined: their types differ");
    const std::int64_t along = axis < shape.size() ? shape[axis] : 0;
    if (axis < shape.size()) shape[axis] = joined.shape[axis];
    if (shape != joined.shape || along % static_cast<std::int64_t>(chunks) != 0)
      throw FormatError(display(name), "cannot be joined: their shapes do not fit");
    if (__builtin_add_overflow(joined.shape[axis], along, &joined.shape[axis])) {
      throw FormatError(display(name), "cannot be joined: too large");
    }
    const StoredTensor piece = in_one_piece(parts[i], left);
    turns = 1;
    for (std::size_t each = 0; each < axis; ++each) turns *= static_cast<std::uint64_t>(shape[each]);
    const auto elements = static_cast<std::uint64_t>(piece.numel());
    const std::uint64_t stretch = turns == 0 ? 0 : elements / turns * size;
    sources.push_back({piece.storage, static_cast<std::uint64_t>(piece.offset) * size, stretch, stretch});
  }
  if (chunks > 1) {
    std::vector<InterleavedSource::InterleavedPart> pieces;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      for (const InterleavedSource::InterleavedPart& each : sources) {
        const std::uint64_t stretch = each.stretch / chunks;
        pieces.push_back({each.bytes, each.begin + chunk * stretch, stretch, each.period});
      }
    }
    sources = std::move(pieces);
  }
  joined.strides = row_major_strides(joined.shape);
  joined.storage = std::make_shared<InterleavedSource>(std::move(sources), turns, name);
  return joined;
}

/// The elementwise sum of several tensors, computed when it is read.
class SumSource final : public ByteSource {
 public:
  SumSource(std::vector<StoredTensor> terms, tensor::DType dtype)
      : terms_(std::move(terms)), dtype_(dtype), name_(terms_.front().storage->name() + " and others") {}

  std::uint64_t size() const override {
    return static_cast<std::uint64_t>(terms_.front().numel()) * tensor::info(dtype_).size;
  }
  const std::string& name() const override { return name_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size(), name_);
    const std::size_t element = tensor::info(dtype_).size;
    std::vector<std::byte> sums;
    while (!out.empty()) {
      const std::uint64_t first = offset / element;
      const auto inside = static_cast<std::size_t>(offset % element);
      const std::size_t count = std::min((inside + out.size() + element - 1) / element, kAtOnce);
      add_up(first, count, sums);
      const std::size_t length = std::min(out.size(), count * element - inside);
      std::memcpy(out.data(), sums.data() + inside, length);
      out = out.subspan(length);
      offset += length;
    }
  }

 private:
  static constexpr std::size_t kAtOnce = 4096;

  void add_up(std::uint64_t first, std::size_t count, std::vector<std::byte>& out) const {
    const tensor::DTypeInfo& info = tensor::info(terms_.front().dtype);
    const std::size_t numbers = info.kind == tensor::DTypeKind::complex ? 2 * count : count;
    std::vector<std::byte> raw(count * info.size);
    std::vector<double> values(numbers);
    std::vector<double> sums(numbers);
    for (const StoredTensor& term : terms_) {
      term.storage->read_at((static_cast<std::uint64_t>(term.offset) + first) * info.size, raw);
      tensor::to_double(term.dtype, raw, values);
      for (std::size_t i = 0; i < numbers; ++i) sums[i] += values[i];
    }
    out.resize(tensor::info(dtype_).size * count);
    tensor::from_double(dtype_, sums, out);
  }

  std::vector<StoredTensor> terms_;
  tensor::DType dtype_;
  std::string name_;
};

/// The type of a sum. Half precision stays half precision, as in NumPy; sums of integers are exact up to
/// 2^53.
tensor::DType type_of_sum(tensor::DType dtype) {
  using tensor::DType;
  if (dtype == DType::float16 || dtype == DType::complex128) return dtype;
  if (tensor::info(dtype).kind == tensor::DTypeKind::complex) return DType::complex64;
  const bool narrow = tensor::info(dtype).kind == tensor::DTypeKind::floating && dtype != DType::float64;
  return narrow ? DType::float32 : DType::float64;
}

}  // namespace

std::shared_ptr<const ByteSource> join_bytes(const std::vector<std::shared_ptr<const ByteSource>>& parts,
                                             const std::string& name) {
  std::vector<InterleavedSource::InterleavedPart> stretches;
  for (const auto& part : parts) stretches.push_back({part, 0, part->size(), 0});
  return std::make_shared<InterleavedSource>(std::move(stretches), 1, name);
}

StoredTensor join_tensors(const std::vector<StoredTensor>& parts, std::size_t axis) {
  if (parts.empty()) throw FormatError("no tensors to join");
  std::vector<std::vector<std::int64_t>> shapes;
  for (const StoredTensor& part : parts) shapes.push_back(squeezed(part.shape));
  return joined_along(parts, shapes, std::min(axis, shapes.front().size() - 1), 1);
}

StoredTensor concatenate(const std::vector<StoredTensor>& parts, std::size_t axis, std::size_t chunks) {
  if (parts.empty() || axis >= parts.front().shape.size()) throw FormatError("no axis to join tensors along");
  std::vector<std::vector<std::int64_t>> shapes;
  for (const StoredTensor& part : parts) shapes.push_back(part.shape);
  return joined_along(parts, shapes, axis, chunks);
}

StoredTensor add_tensors(const std::vector<StoredTensor>& terms) {
  if (terms.empty()) throw FormatError("no tensors to add");
  StoredTensor sum;
  sum.dtype = type_of_sum(terms.front().dtype);
  sum.shape = terms.front().shape;
  sum.strides = row_major_strides(sum.shape);
  std::vector<StoredTensor> pieces;
  std::uint64_t left = ElementReader::kMaxGather;
  for (const StoredTensor& term : terms) {
    if (term.dtype != terms.front().dtype || term.shape != sum.shape)
      throw FormatError(display(term.storage->name()), "cannot be added: types or shapes differ");
    pieces.push_back(in_one_piece(term, left));
  }
  sum.storage = std::make_shared<SumSource>(std::move(pieces), sum.dtype);
  return sum;
}

}  // namespace msprobe::formats
