// SPDX-License-Identifier: Apache-2.0
// The elements of a stored tensor as numbers and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/stored_tensor.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::formats {

/// Elements in logical order as doubles: exact for all types but 64-bit integers, which are rounded. A
/// complex element is two numbers, its real and its imaginary part.
class ValueReader {
 public:
  explicit ValueReader(const StoredTensor& tensor);

  std::int64_t remaining() const { return reader_.remaining(); }
  std::size_t numbers_per_element() const { return parts_; }
  /// The next elements, at most `count`; valid until the next call.
  std::span<const double> read(std::size_t count);

 private:
  tensor::DType dtype_;
  std::size_t item_size_;
  std::size_t parts_;
  ElementReader reader_;
  std::vector<std::byte> raw_;
  std::vector<double> values_;
};

/// Statistics over all elements, for complex numbers over their absolute values. Denormal numbers are those
/// of the stored type.
tensor::Statistics statistics_of(const StoredTensor& tensor);

/// The smallest and the largest element of an integer type, digit by digit: a double has only 53 bits for
/// them. Nothing for other types and for no elements.
struct IntegerRange {
  std::string min;
  std::string max;
};
std::optional<IntegerRange> integer_range(tensor::DType dtype, const tensor::Statistics& statistics);

/// The first elements as Python would print them: integers in full, floating-point numbers with the fewest
/// digits that distinguish them from their neighbours in the stored type, `True`, `(1+2j)`.
std::vector<std::string> first_elements(const StoredTensor& tensor, std::size_t count);

/// A number that was computed from elements of this type, rounded to the type and printed as its elements
/// are.
std::string number_text(double value, tensor::DType dtype);

/// The fewest digits that distinguish a float from its neighbours, as Python prints numbers.
std::string float_text(float value);

}  // namespace msprobe::formats
