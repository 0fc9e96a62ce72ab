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
#include "tensor/element_feed.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::formats {

/// Elements in logical order as doubles: exact for all types but 64-bit integers, which are rounded. A
/// complex element is two numbers, its real and its imaginary part.
class ValueReader {
 public:
  explicit ValueReader(const StoredTensor& tensor);

  std::int64_t remaining() const { return feed_.remaining(); }
  std::size_t numbers_per_element() const { return parts_; }
  /// The next elements, at most `count`; valid until the next call.
  std::span<const double> read(std::size_t count);

 private:
  std::size_t parts_;
  tensor::ElementFeed<double, ElementReader> feed_;
};

/// Statistics over elements that come piece by piece, for complex numbers over their absolute values.
/// Denormal numbers are those of the stored type.
class ElementStatistics {
 public:
  explicit ElementStatistics(tensor::DType dtype);
  /// Whole elements, in the machine's byte order.
  void add(std::span<const std::byte> raw);
  tensor::Statistics finish() const;

 private:
  void add_narrow(std::span<const std::byte> raw, std::size_t count);
  void add_complex(std::span<const std::byte> raw, std::size_t count);

  tensor::DType dtype_;
  double least_normal_ = 0;
  std::optional<std::uint64_t> denormal_;  // unless the accumulator counts in the stored type
  tensor::StatisticsAccumulator accumulator_;
  std::vector<float> singles_;
  std::vector<double> doubles_;
};

/// The same over all elements of a tensor.
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
