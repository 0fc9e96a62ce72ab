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
  const Array indices = arguments.tensor("input");
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

Results run_gather(Arguments& arguments) {
  const Array input = arguments.tensor("input");
  const Array index = arguments.tensor("index");
  const std::size_t axis = axis_of(arguments.integer("dim", 0), input.rank());
  if (input.shape.empty() || index.rank() != input.rank() || is_floating(index.dtype)) refuse_argument();
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    if (i != axis && index.shape[i] > input.shape[i]) refuse_argument();
  }
  Array result = arguments.workspace().make(index.shape);
  const Shape strides = row_major(input.shape);
  const Shape own = row_major(index.shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::size_t at = 0;
    std::size_t left = i;
    for (std::size_t k = 0; k < own.size(); ++k) {
      const std::size_t place = left / static_cast<std::size_t>(own[k]);
      left %= static_cast<std::size_t>(own[k]);
      at += static_cast<std::size_t>(strides[k]) *
            (k == axis ? index_of(index.values[i], input.shape[axis]) : place);
    }
    result.values[i] = input.values[at];
  }
  return only(std::move(result));
}

/// Which elements were dropped is seen where they are 0. How many, is not: that is chance.
Results run_dropout(Arguments& arguments) {
  Array array = arguments.tensor("input");
  const double p = arguments.number("p", 0.5);
  const bool is_training = arguments.flag("training", true);
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
      {"embedding", Where::functional,
       "input weight padding_idx- max_norm norm_type- scale_grad_by_freq- sparse-", &run_embedding},
      {"embedding", Where::plain, "weight input|indices padding_idx- scale_grad_by_freq- sparse-", &run_embedding},
      {"Embedding", Where::module, "input", &run_embedding_module},
      {"index_select", Where::torch, "input dim index", &run_index_select},
      {"gather", Where::torch, "input dim index sparse_grad-", &run_gather},
      {"dropout", Where::torch, "input p training|train inplace-", &run_dropout},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay
