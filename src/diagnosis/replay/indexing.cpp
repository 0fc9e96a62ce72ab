// SPDX-License-Identifier: Apache-2.0
// Operations that pick elements by index.
#include <algorithm>
#include <cmath>

#include "diagnosis/replay/operation.hpp"

namespace msprobe::diagnosis::replay {
namespace {

/// An index as the operation takes it: not negative, within the length.
std::size_t index_of(double value, std::int64_t length) {
  if (!(value >= 0) || value >= static_cast<double>(length)) refuse_argument();
  return static_cast<std::size_t>(value);
}

Results rows_of(Arguments& arguments, const Array& indices, const Array& weight) {
  if (weight.rank() != 2 || is_floating(indices.dtype)) refuse_argument();
  Shape shape = indices.shape;
  shape.push_back(weight.shape[1]);
  Array result = arguments.workspace().make(shape);
  const auto width = static_cast<std::size_t>(weight.shape[1]);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::size_t row = index_of(indices.values[i], weight.shape[0]);
    std::copy_n(weight.values.begin() + static_cast<std::ptrdiff_t>(row * width), width,
                result.values.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return only(std::move(result));
}

/// With max_norm the table is changed before it is read.
Results run_embedding(Arguments& arguments) {
  if (arguments.given("max_norm")) refuse_argument();
  arguments.ignore({"padding_idx", "norm_type", "scale_grad_by_freq", "sparse"});
  const Array indices = arguments.tensor(arguments.has("indices") ? "indices" : "input");
  return rows_of(arguments, indices, arguments.tensor("weight"));
}

Results run_embedding_module(Arguments& arguments) {
  const Array weight = arguments.need_parameter("weight");
  return rows_of(arguments, arguments.tensor("input"), weight);
}

Results run_index_select(Arguments& arguments) {
  const Array input = arguments.tensor("input");
  const Array index = arguments.tensor("index");
  const std::size_t axis = axis_of(arguments.integer("dim", 0), input.rank());
  if (input.shape.empty() || index.rank() > 1 || is_floating(index.dtype)) refuse_argument();
  Shape shape = input.shape;
  shape[axis] = static_cast<std::int64_t>(index.size());
  Array result = arguments.workspace().make(shape);
  const auto inner = static_cast<std::size_t>(row_major(input.shape)[axis]);
  const auto length = static_cast<std::size_t>(input.shape[axis]);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t line = i / inner;
    const std::size_t chosen = index_of(index.values[line % index.size()], input.shape[axis]);
    result.values[i] = input.values[(line / index.size() * length + chosen) * inner + i % inner];
  }
  return only(std::move(result));
}

/// Finds the element of a tensor that each element of an index means, as in gather and scatter: it has the
/// same place except along one axis.
class IndexedPlaces {
 public:
  IndexedPlaces(const Shape& shape, const Array& index, std::size_t axis)
      : strides_(row_major(shape)),
        own_(row_major(index.shape)),
        index_(index),
        axis_(axis),
        length_(shape[axis]) {}

  std::size_t of(std::size_t i) const {
    std::size_t at = 0;
    std::size_t left = i;
    for (std::size_t k = 0; k < own_.size(); ++k) {
      const std::size_t place = left / static_cast<std::size_t>(own_[k]);
      left %= static_cast<std::size_t>(own_[k]);
      at +=
          static_cast<std::size_t>(strides_[k]) * (k == axis_ ? index_of(index_.values[i], length_) : place);
    }
    return at;
  }

 private:
  Shape strides_;
  Shape own_;
  const Array& index_;
  std::size_t axis_;
  std::int64_t length_;
};

Results run_gather(Arguments& arguments) {
  arguments.ignore({"sparse_grad"});
  const Array input = arguments.tensor("input");
  const Array index = arguments.tensor("index");
  const std::size_t axis = axis_of(arguments.integer("dim", 0), input.rank());
  if (input.shape.empty() || index.rank() != input.rank() || is_floating(index.dtype)) refuse_argument();
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    if (i != axis && index.shape[i] > input.shape[i]) refuse_argument();
  }
  Array result = arguments.workspace().make(index.shape);
  const IndexedPlaces places(input.shape, index, axis);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result.values[i] = input.values[places.of(i)];
  }
  return only(std::move(result));
}

/// index_add, scatter_add: every element of the source goes to `place(index of it in the source)`.
template <typename Place>
Results scattered(Array result, const Array& source, double alpha, const Place& place) {
  double sizes = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    result.values[place(i)] += alpha * source.values[i];
    sizes += alpha * alpha * source.values[i] * source.values[i];
  }
  // Kernels may add these sums up in any order.
  return only(std::move(result), std::isfinite(sizes) ? 2 * std::sqrt(sizes) : 0);
}

Results run_index_add(Arguments& arguments) {
  Array input = arguments.tensor("input");
  const Array index = arguments.tensor("index");
  const Array source = arguments.tensor("source");
  const std::size_t axis = axis_of(arguments.integer("dim", 0), input.rank());
  Shape expected = input.shape;
  if (expected.empty() || index.rank() > 1 || is_floating(index.dtype)) refuse_argument();
  expected[axis] = static_cast<std::int64_t>(index.size());
  if (source.shape != expected) refuse_argument();
  const Shape strides = row_major(input.shape);
  const auto inner = static_cast<std::size_t>(strides[axis]);
  const auto length = static_cast<std::size_t>(input.shape[axis]);
  return scattered(std::move(input), source, arguments.number("alpha", 1), [&](std::size_t i) {
    const std::size_t line = i / inner;
    const std::size_t chosen = index_of(index.values[line % index.size()], static_cast<std::int64_t>(length));
    return (line / index.size() * length + chosen) * inner + i % inner;
  });
}

Results run_scatter_add(Arguments& arguments) {
  Array input = arguments.tensor("input");
  const Array index = arguments.tensor("index");
  const Array source = arguments.tensor("src");
  const std::size_t axis = axis_of(arguments.integer("dim", 0), input.rank());
  if (input.shape.empty() || source.shape != index.shape || index.rank() != input.rank() ||
      is_floating(index.dtype)) {
    refuse_argument();
  }
  for (std::size_t k = 0; k < input.shape.size(); ++k) {
    if (k != axis && index.shape[k] > input.shape[k]) refuse_argument();
  }
  const IndexedPlaces places(input.shape, index, axis);
  return scattered(std::move(input), source, 1, [&](std::size_t i) { return places.of(i); });
}

/// One after the other along an axis that is there, or a new one.
Results joined(Arguments& arguments, bool is_new) {
  const Value& list = arguments.need("tensors");
  if (list.kind != Value::ValueForm::list || list.items.empty()) refuse_argument();
  std::vector<Array> parts;
  for (const Value& item : list.items) {
    if (item.kind != Value::ValueForm::tensor) refuse_argument();
    parts.push_back(arguments.workspace().load(item.tensor));
  }
  const std::int64_t rank = parts[0].rank() + (is_new ? 1 : 0);
  const std::size_t axis = axis_of(arguments.integer("dim", 0), rank);
  Shape shape = parts[0].shape;
  if (!is_new && shape.empty()) refuse_argument();
  if (is_new) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(shape[i]);
  std::int64_t length = 0;
  for (const Array& part : parts) {
    Shape own = part.shape;
    if (is_new) own.insert(own.begin() + static_cast<std::ptrdiff_t>(std::min(axis, own.size())), 1);
    if (own.size() != shape.size()) refuse_argument();
    length += own[axis];
    own[axis] = shape[axis];
    if (own != shape) refuse_argument();
  }
  shape[axis] = length;
  Array result = arguments.workspace().make(shape);
  std::size_t at = 0;
  for (std::size_t i = 0; i < outer; ++i) {
    for (const Array& part : parts) {
      const std::size_t count = part.size() / outer;
      std::copy_n(part.values.begin() + static_cast<std::ptrdiff_t>(i * count), count,
                  result.values.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
    }
  }
  return only(std::move(result));
}

/// The recorded output shows which elements were dropped, since they are 0. How many were dropped is chance
/// and is not checked.
Results run_dropout(Arguments& arguments) {
  arguments.ignore({"inplace"});
  Array array = arguments.tensor("input");
  const double p = arguments.number("p", 0.5);
  const bool is_training = arguments.flag(arguments.name(2), true);  // `training` or `train`
  if (!is_training || p == 0) return only(std::move(array));
  if (!(p > 0) || p > 1) refuse_argument();
  const Array recorded = arguments.recorded(0);
  if (recorded.shape != array.shape) refuse_argument();
  for (std::size_t i = 0; i < array.size(); ++i) {
    array.values[i] = recorded.values[i] == 0 ? 0 : array.values[i] / (1 - p);
  }
  return only(std::move(array));
}

}  // namespace

std::span<const Operation> index_operations() {
  static const std::vector<Operation> kOperations = {
      {"embedding", &run_embedding, nullptr, nullptr, &run_embedding_module},
      {"index_select", &run_index_select},
      {"gather", &run_gather},
      {"index_add", &run_index_add},
      {"scatter_add", &run_scatter_add},
      {"cat", [](Arguments& arguments) { return joined(arguments, false); }},
      {"stack", [](Arguments& arguments) { return joined(arguments, true); }},
      {"dropout", &run_dropout},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay
