// SPDX-License-Identifier: Apache-2.0
#include "formats/joined_tensor.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

/// The bytes of tensors that lie in one piece each, a stretch of every one in turn.
class InterleavedSource final : public ByteSource {
 public:
  struct Part {
    std::shared_ptr<const ByteSource> bytes;
    std::uint64_t begin = 0;
    std::uint64_t stretch = 0;
  };

  InterleavedSource(std::vector<Part> parts, std::uint64_t turns, std::string name)
      : parts_(std::move(parts)), turns_(turns), name_(std::move(name)) {
    for (const Part& part : parts_) turn_ += part.stretch;
  }

  std::uint64_t size() const override { return turn_ * turns_; }
  const std::string& name() const override { return name_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset) {
      throw FormatError(display(name_), "data expected beyond the end of the file");
    }
    while (!out.empty()) {
      const std::uint64_t turn = offset / turn_;
      std::uint64_t inside = offset % turn_;
      std::size_t at = 0;
      while (inside >= parts_[at].stretch) inside -= parts_[at++].stretch;
      const Part& part = parts_[at];
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(part.stretch - inside, out.size()));
      part.bytes->read_at(part.begin + turn * part.stretch + inside, out.first(length));
      out = out.subspan(length);
      offset += length;
    }
  }

 private:
  std::vector<Part> parts_;
  std::uint64_t turns_;
  std::uint64_t turn_ = 0;  // bytes of one stretch of every part
  std::string name_;
};

/// The same tensor in one piece and in the machine's byte order.
StoredTensor in_one_piece(const StoredTensor& tensor) {
  const tensor::DTypeInfo& info = tensor::info(tensor.dtype);
  if (tensor.is_contiguous() && !tensor.big_endian && !tensor.conjugate && !tensor.negative) return tensor;
  const auto count = static_cast<std::uint64_t>(tensor.numel());
  if (count > ElementReader::kMaxGather / info.size) {
    throw FormatError(display(tensor.storage->name()),
                      "too large to be joined: it does not lie in one piece");
  }
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
  // Tensors of one element are joined to a list.
  if (out.empty()) out.push_back(1);
  return out;
}

}  // namespace

StoredTensor join_tensors(const std::vector<StoredTensor>& parts, std::size_t axis) {
  if (parts.empty()) throw FormatError("no tensors to be joined");
  const std::string name = parts.front().storage->name() + " and others";
  StoredTensor joined;
  joined.dtype = parts.front().dtype;
  joined.shape = squeezed(parts.front().shape);
  axis = std::min(axis, joined.shape.size() - 1);
  joined.shape[axis] = 0;
  const auto size = static_cast<std::uint64_t>(tensor::info(joined.dtype).size);
  std::vector<InterleavedSource::Part> sources;
  std::uint64_t turns = 1;
  for (const StoredTensor& each : parts) {
    std::vector<std::int64_t> shape = squeezed(each.shape);
    if (each.dtype != joined.dtype) throw FormatError(display(name), "cannot be joined: their types differ");
    const std::int64_t along = axis < shape.size() ? shape[axis] : 0;
    if (axis < shape.size()) shape[axis] = joined.shape[axis];
    if (shape != joined.shape) throw FormatError(display(name), "cannot be joined: their shapes do not fit");
    if (__builtin_add_overflow(joined.shape[axis], along, &joined.shape[axis])) {
      throw FormatError(display(name), "cannot be joined: too large");
    }
    const StoredTensor piece = in_one_piece(each);
    turns = 1;
    for (std::size_t i = 0; i < axis; ++i) turns *= static_cast<std::uint64_t>(shape[i]);
    const auto elements = static_cast<std::uint64_t>(piece.numel());
    sources.push_back({piece.storage, static_cast<std::uint64_t>(piece.offset) * size,
                       turns == 0 ? 0 : elements / turns * size});
  }
  joined.strides = row_major_strides(joined.shape);
  joined.storage = std::make_shared<InterleavedSource>(std::move(sources), turns, name);
  return joined;
}

}  // namespace msprobe::formats
