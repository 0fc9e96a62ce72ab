// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parameter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::uint64_t kLargestElement = 16;  // bytes

/// A change of a parameter also applies to its steps.
template <typename Change>
std::shared_ptr<const Parameter> half_step_of(const Parameter& parameter, const Change& change) {
  if (parameter.half_step == nullptr) return {};
  return std::make_shared<const Parameter>(change(*parameter.half_step));
}

}  // namespace

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::int64_t numel_of(const Shape& shape) {
  std::int64_t numel = 1;
  for (const std::int64_t length : shape) numel *= length;
  return numel;
}

std::int64_t checked_numel(const Shape& shape, const std::string& what) {
  if (std::ranges::any_of(shape, [](std::int64_t length) { return length < 0; }))
    throw FormatError(display(what), "a tensor of negative size");
  const auto size = formats::checked_size(shape, kLargestElement);
  if (!size) throw FormatError(display(what), "a tensor with more elements than memory can hold");
  return static_cast<std::int64_t>(*size / kLargestElement);
}

std::int64_t Parameter::numel() const {
  return numel_of(shape);
}

std::uint64_t Parameter::bytes() const {
  return static_cast<std::uint64_t>(numel()) * tensor::info(dtype).size;
}

std::uint64_t Parameter::memory() const {
  std::uint64_t sum = 0;
  for (const ParameterBlock& block : blocks) sum += block.memory;
  return sum;
}

Parameter whole(std::string name, tensor::DType dtype, Shape shape, TensorSource source,
                std::uint64_t memory) {
  checked_numel(shape, name);
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.dtype = dtype;
  ParameterBlock block;
  block.source = std::make_shared<const TensorSource>(std::move(source));
  block.memory = memory;
  block.view = shape;
  block.begin.assign(shape.size(), 0);
  block.size = shape;
  block.axes.resize(shape.size());
  std::iota(block.axes.begin(), block.axes.end(), 0);
  block.offset.assign(shape.size(), 0);
  parameter.shape = std::move(shape);
  parameter.blocks.push_back(std::move(block));
  return parameter;
}

Parameter computed(const std::string& name, const Shape& shape, const OpenComputed& open,
                   std::uint64_t memory) {
  const auto made = [&](bool half_steps) {
    const auto source = [shape, open, half_steps] {
      formats::StoredTensor tensor;
      tensor.shape = shape;
      tensor.strides = formats::row_major_strides(shape);
      tensor.storage = open(half_steps);
      tensor.big_endian = std::endian::native == std::endian::big;
      return tensor;
    };
    return whole(name, tensor::DType::float32, shape, source, memory);
  };
  Parameter parameter = made(false);
  parameter.half_step = std::make_shared<const Parameter>(made(true));
  return parameter;
}

Parameter narrow(const Parameter& parameter, std::size_t axis, std::int64_t begin, std::int64_t length) {
  if (axis >= parameter.shape.size() || begin < 0 || length < 0 || begin > parameter.shape[axis] - length) {
    throw std::logic_error("a part outside its parameter");
  }
  Parameter part;
  part.name = parameter.name;
  part.dtype = parameter.dtype;
  part.shape = parameter.shape;
  part.shape[axis] = length;
  for (const ParameterBlock& block : parameter.blocks) {
    const std::int64_t first = std::max(begin, block.offset[axis]);
    const std::int64_t last = std::min(begin + length, block.offset[axis] + block.extent(axis));
    if (first >= last) continue;
    ParameterBlock inside = block;
    const auto source_axis = static_cast<std::size_t>(block.axes[axis]);
    inside.begin[source_axis] += first - block.offset[axis];
    inside.size[source_axis] = last - first;
    inside.offset[axis] = first - begin;
    part.blocks.push_back(std::move(inside));
  }
  part.has_searched_scales = parameter.has_searched_scales;
  part.half_step =
      half_step_of(parameter, [&](const Parameter& step) { return narrow(step, axis, begin, length); });
  return part;
}

Parameter drop_axis(const Parameter& parameter, std::size_t axis) {
  if (axis >= parameter.shape.size() || parameter.shape[axis] != 1) {
    throw std::logic_error("an axis that cannot be dropped");
  }
  Parameter result = parameter;
  result.reported_shape.clear();
  const auto at = static_cast<std::ptrdiff_t>(axis);
  result.shape.erase(result.shape.begin() + at);
  for (ParameterBlock& block : result.blocks) {
    block.axes.erase(block.axes.begin() + at);
    block.offset.erase(block.offset.begin() + at);
  }
  result.half_step = half_step_of(parameter, [&](const Parameter& step) { return drop_axis(step, axis); });
  return result;
}

Parameter transposed(const Parameter& parameter) {
  const std::size_t rank = parameter.shape.size();
  if (rank < 2) throw std::logic_error("a vector cannot be transposed");
  Parameter result = parameter;
  result.reported_shape.clear();
  std::swap(result.shape[rank - 2], result.shape[rank - 1]);
  const std::uint64_t size = tensor::info(parameter.dtype).size;
  for (ParameterBlock& block : result.blocks) {
    std::swap(block.axes[rank - 2], block.axes[rank - 1]);
    std::swap(block.offset[rank - 2], block.offset[rank - 1]);
    // Reading the block keeps everything from its first to its last element in the file.
    const Shape strides = formats::row_major_strides(block.view);
    std::uint64_t span = 1;
    for (std::size_t i = 0; i < block.view.size(); ++i) {
      if (block.size[i] > 1) span += static_cast<std::uint64_t>((block.size[i] - 1) * strides[i]);
    }
    block.memory = std::max(block.memory, span * size);
  }
  result.half_step = half_step_of(parameter, [](const Parameter& step) { return transposed(step); });
  if (parameter.base != nullptr) result.base = std::make_shared<const Parameter>(transposed(*parameter.base));
  return result;
}

namespace {

Parameter zeros_like(const Parameter& part) {
  const auto source = [shape = part.shape] {
    formats::StoredTensor tensor;
    tensor.shape = shape;
    tensor.strides.assign(shape.size(), 0);
    tensor.storage = memory_source(std::vector<std::byte>(sizeof(float)), "zeros");
    return tensor;
  };
  return whole(part.name, tensor::DType::float32, part.shape, source);
}

/// Joins the steps of parts; a part that was never quantized has steps of 0.
std::shared_ptr<const Parameter> joined_half_steps(const std::vector<Parameter>& parts, std::size_t axis) {
  if (std::ranges::none_of(parts, [](const Parameter& part) { return part.half_step != nullptr; })) return {};
  std::vector<Parameter> steps;
  for (const Parameter& part : parts)
    steps.push_back(part.half_step != nullptr ? *part.half_step : zeros_like(part));
  return std::make_shared<const Parameter>(concatenate(steps, axis));
}

}  // namespace

Parameter concatenate(const std::vector<Parameter>& parts, std::size_t axis) {
  Parameter result = parts.front();
  result.reported_shape.clear();
  if (axis >= result.shape.size()) {
    throw FormatError(display(result.name), "its slices have too few dimensions to be joined");
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Parameter& part = parts[i];
    Shape expected = result.shape;
    if (part.shape.size() == expected.size()) expected[axis] = part.shape[axis];
    if (part.shape != expected) {
      throw FormatError(display(result.name), fmt::format("slices of shapes {} and {} cannot be joined",
                                                          shape_text(result.shape), shape_text(part.shape)));
    }
    if (part.dtype != result.dtype) {
      throw FormatError(display(result.name),
                        fmt::format("its slices have the types {} and {}", tensor::info(result.dtype).name,
                                    tensor::info(part.dtype).name));
    }
    for (ParameterBlock block : part.blocks) {
      block.offset[axis] += result.shape[axis];
      result.blocks.push_back(std::move(block));
    }
    result.has_searched_scales = result.has_searched_scales || part.has_searched_scales;
    result.shape[axis] += part.shape[axis];
    checked_numel(result.shape, result.name);
  }
  result.half_step = joined_half_steps(parts, axis);
  return result;
}

Parameter reshaped(const Parameter& parameter, Shape shape) {
  const bool is_whole = parameter.blocks.size() == 1 && parameter.blocks[0].size == parameter.blocks[0].view;
  if (!is_whole || checked_numel(shape, parameter.name) != parameter.numel()) {
    throw FormatError(display(parameter.name), fmt::format("{} cannot be viewed as {}",
                                                           shape_text(parameter.shape), shape_text(shape)));
  }
  Parameter result =
      whole(parameter.name, parameter.dtype, shape, *parameter.blocks[0].source, parameter.blocks[0].memory);
  result.has_searched_scales = parameter.has_searched_scales;
  result.half_step =
      half_step_of(parameter, [&](const Parameter& step) { return reshaped(step, std::move(shape)); });
  return result;
}

bool StackBudget::take(std::int64_t parts, std::size_t blocks) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(blocks, 1));
  if (parts > parts_ || parts > steps_ / count) return false;
  parts_ -= parts;
  steps_ -= parts * count;
  return true;
}

}  // namespace msprobe::checkpoint
