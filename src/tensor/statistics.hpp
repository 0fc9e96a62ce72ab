// SPDX-License-Identifier: Apache-2.0
// Computes statistics of one tensor in one pass. The numbers are those that DifferenceAccumulator reports for
// each side; the rules and error bounds in difference.hpp hold here too.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tensor/isa.hpp"

namespace msprobe::tensor {

/// Statistics of one tensor. max and min ignore NaN, and are NaN if there is nothing else; sum and sum of
/// squares cover all elements (so NaN and Inf spread as in PyTorch).
struct Statistics {
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t pos_inf = 0;
  std::uint64_t neg_inf = 0;
  std::uint64_t zero = 0;
  std::uint64_t denormal = 0;  // non-zero and below the smallest normal number of the working type
  double max = 0;
  double min = 0;
  // Exact, for integers; for std::uint64_t the same 64 bits.
  std::int64_t integer_max = 0;
  std::int64_t integer_min = 0;
  double sum = 0;
  double sum_of_squares = 0;
  double mean() const;  // NaN if empty
  double norm() const;  // 2-norm
};

/// Accumulates Statistics. Elements are fed in logical order, in pieces of any size. Use only one `add`
/// overload for each accumulator (std::logic_error otherwise). Move-only.
class StatisticsAccumulator {
 public:
  explicit StatisticsAccumulator(Isa isa);
  StatisticsAccumulator();  // the best instruction set of this machine
  ~StatisticsAccumulator();
  StatisticsAccumulator(StatisticsAccumulator&&) noexcept;
  StatisticsAccumulator& operator=(StatisticsAccumulator&&) noexcept;

  void add(std::span<const float> data);
  void add(std::span<const double> data);
  void add(std::span<const std::int64_t> data);
  void add(std::span<const std::uint64_t> data);

  Statistics finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::tensor
