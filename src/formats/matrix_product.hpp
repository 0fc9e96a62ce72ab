// SPDX-License-Identifier: Apache-2.0
// Products of tensors that are taken for matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/stored_tensor.hpp"

namespace msprobe::formats {

/// All elements of a tensor, in memory.
struct Elements {
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 26;

  std::vector<std::int64_t> shape;
  std::vector<double> values;
  tensor::DType dtype = tensor::DType::float64;  // that the values are rounded to when they are stored
};

/// Elements whose first index is not below `valid_rows` are read as 0. FormatError naming the file: complex
/// elements, more of them than kMost.
Elements read_elements(const StoredTensor& tensor, std::optional<std::int64_t> valid_rows = std::nullopt);

/// The product as numpy.matmul defines it: of the last two axes, with the others broadcast; a vector is a row
/// on the left and a column on the right. Sums are computed in double. FormatError if the shapes do not fit
/// or the product has more than kMost elements.
Elements multiply(const Elements& left, const Elements& right);

/// Rounded once, to the type; `name` is for messages.
StoredTensor store(const Elements& elements, const std::string& name);

}  // namespace msprobe::formats
