// SPDX-License-Identifier: Apache-2.0
// A parameter of a model, put together from blocks in one or many files. Slices of tensor-parallel ranks,
// shards of a distributed checkpoint, halves of a gated projection: all of them are boxes of stored tensors
// that have a place in the whole. Elements are loaded only when they are read, in row-major order of the
// whole, a few kilobytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::checkpoint {

using Shape = std::vector<std::int64_t>;

/// "[16, 8]".
std::string shape_text(const Shape& shape);

/// The number of elements, if the shape is known to be sound.
std::int64_t numel_of(const Shape& shape);
/// The same of any shape; FormatError naming `what` for a negative length or more than 2^62 bytes' worth.
std::int64_t checked_numel(const Shape& shape, const std::string& what);

/// Opens a stored tensor when it is needed, from any thread.
using TensorSource = std::function<formats::StoredTensor()>;

/// A box of a stored tensor and where it belongs.
struct ParameterBlock {
  std::shared_ptr<const TensorSource> source;
  Shape view;             // the shape in which the stored tensor is viewed; as many elements as it has
  Shape begin;            // of the box, in the view
  Shape size;             // of the box
  std::vector<int> axes;  // axis i of the parameter is this axis of the view; the box is 1 along all others
  Shape offset;           // of the box in the parameter
  std::uint64_t memory = 0;  // bytes that reading keeps at most, besides buffers
  std::int64_t extent(std::size_t axis) const { return size[static_cast<std::size_t>(axes[axis])]; }
};

struct Parameter {
  std::string name;
  tensor::DType dtype = tensor::DType::float32;
  Shape shape;
  Shape reported_shape;  // where reports give the elements another shape; else empty
  std::vector<ParameterBlock> blocks;
  /// For dequantized elements: how far each may be from the number that was rounded to it, in the same shape.
  std::shared_ptr<const Parameter> half_step;
  /// For the sum of a weight and an adapter: the weight, in the same shape.
  std::shared_ptr<const Parameter> base;
  /// The format's programs search for scales that suit most elements, so some elements may be further away.
  bool has_searched_scales = false;

  const Shape& shown_shape() const { return reported_shape.empty() ? shape : reported_shape; }
  std::int64_t numel() const;
  std::uint64_t bytes() const;
  std::uint64_t memory() const;  // of all its blocks
};

/// A parameter that is one stored tensor, looked at as `shape`. `memory` as in ParameterBlock.
Parameter whole(std::string name, tensor::DType dtype, Shape shape, TensorSource source,
                std::uint64_t memory = 0);

/// A parameter of float32 that is computed while it is read, with its half step: `open` gives the elements of
/// one of both in row-major order, in the machine's byte order. `memory` as in ParameterBlock.
using OpenComputed = std::function<std::shared_ptr<const ByteSource>(bool half_steps)>;
Parameter computed(const std::string& name, const Shape& shape, const OpenComputed& open,
                   std::uint64_t memory = 0);

/// `length` steps of one axis from `begin` on. The range must lie inside the parameter.
Parameter narrow(const Parameter& parameter, std::size_t axis, std::int64_t begin, std::int64_t length);

/// The parameter without an axis of length 1.
Parameter drop_axis(const Parameter& parameter, std::size_t axis);

/// A parameter with its last two axes exchanged. Reading it keeps each of its blocks in memory.
Parameter transposed(const Parameter& parameter);

/// Parts end to end along an axis; the name is that of the first. FormatError if their types or other axes
/// differ.
Parameter concatenate(const std::vector<Parameter>& parts, std::size_t axis);

/// A parameter that is one whole stored tensor, in another shape of as many elements.
Parameter reshaped(const Parameter& parameter, Shape shape);

/// Limits the work of splitting stacked parameters, for all of them together, because a few bytes can claim
/// any number of parts. A parameter beyond the limit stays stacked.
class StackBudget {
 public:
  /// Spends what it costs to make so many parts of so many blocks; false if that is too much.
  bool take(std::int64_t parts, std::size_t blocks);

 private:
  std::int64_t parts_ = std::int64_t{1} << 17;
  std::int64_t steps_ = std::int64_t{1} << 26;  // parts times blocks
};

/// Reads a parameter's elements in row-major order, as raw bytes in the machine's byte order. FormatError if
/// its blocks leave a gap or overlap, or if a stored tensor is not what was announced.
class ParameterReader {
 public:
  /// Buffers of all blocks that are read in turns take at most about this many bytes.
  static constexpr std::size_t kBuffers = std::size_t{2} << 20;

  explicit ParameterReader(const Parameter& parameter);
  ~ParameterReader();
  ParameterReader(const ParameterReader&) = delete;
  ParameterReader& operator=(const ParameterReader&) = delete;

  /// Fills `out` (a whole number of elements, not more than remain).
  void read(std::span<std::byte> out);
  std::int64_t remaining() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::checkpoint
