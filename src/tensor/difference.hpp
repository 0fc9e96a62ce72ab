// SPDX-License-Identifier: Apache-2.0
// One pass over two tensors computes every metric of `compare` and the statistics of both sides.
//
// Elements are fed in logical order, in pieces of any size, already converted to the working type: float (for
// float32 and narrower floats), double (float64, integers up to 32 bits, bool), or 64-bit integers. The
// result depends neither on the sizes of the pieces nor on the instruction set: sums run in 16 fixed lanes
// (element i goes to lane i % 16), in double, and the lanes are added in a fixed order.
//
// Error bounds (n elements, u = 2^-53): each sum has m = ceil(n/16) terms per lane and an error of at most (m
// + 18) u times the sum of the absolute terms. Products and squares of float inputs are exact in double;
// those of double inputs overflow to infinity as in NumPy, and each that underflows may add 2^-1074 to the
// error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "tensor/isa.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::tensor {

/// The results of one pass over a pair. N is the target, B is golden.
struct Difference {
  std::uint64_t count = 0;
  /// Elements where exactly one side is NaN, or exactly one side is infinite.
  std::uint64_t nonfinite_mismatch = 0;
  /// Elements where both sides are infinite with opposite signs.
  std::uint64_t infinity_sign_mismatch = 0;
  /// Elements that are not equal (NaN equals NaN here; 0 equals -0).
  std::uint64_t unequal = 0;
  /// The flat index of the first unequal element, or -1.
  std::int64_t first_unequal = -1;
  // The sums and maxima below use 0 on both sides for elements that are NaN or infinite on either side.
  double dot = 0;                 // sum N*B
  double squares_target = 0;      // sum N*N
  double squares_golden = 0;      // sum B*B
  double squares_difference = 0;  // sum (N-B)^2, the difference taken in double
  double max_abs = 0;             // max |N-B|, in double
  /// max |(N-B)/B| in the working type R (float or double; integers in double); if B is 0, eps(R) is added to
  /// both sides first (docs/rules.md, "Metrics of tensors").
  double max_relative = 0;
  std::uint64_t below_one_thousandth = 0;    // count of relative error < 0.001 (in R)
  std::uint64_t below_five_thousandths = 0;  // count of relative error < 0.005 (in R)
  Statistics target;
  Statistics golden;
};

/// Accumulates a Difference. Use only one `add` overload for each accumulator, with spans of equal length
/// (std::logic_error otherwise). Pointers need at most the natural alignment of their element type.
/// Move-only.
class DifferenceAccumulator {
 public:
  explicit DifferenceAccumulator(Isa isa);
  DifferenceAccumulator();  // the best instruction set of this machine
  ~DifferenceAccumulator();
  DifferenceAccumulator(DifferenceAccumulator&&) noexcept;
  DifferenceAccumulator& operator=(DifferenceAccumulator&&) noexcept;

  void add(std::span<const float> target, std::span<const float> golden);
  void add(std::span<const double> target, std::span<const double> golden);
  /// The differences are exact: they are computed in 128 bits before they become double.
  void add(std::span<const std::int64_t> target, std::span<const std::int64_t> golden);
  void add(std::span<const std::uint64_t> target, std::span<const std::uint64_t> golden);

  Difference finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::tensor
