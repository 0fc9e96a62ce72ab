// SPDX-License-Identifier: Apache-2.0
// One pass over a pair of parameters computes everything that a report says about it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "checkpoint/parameter.hpp"
#include "checkpoint/rounding.hpp"

namespace msprobe::checkpoint {

/// Counts and range of one side's elements.
struct ElementCounts {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  std::uint64_t denormal = 0;  // below the normal numbers of the stored type
  double least = 0;            // of all elements but NaN
  double most = 0;
};

struct PairMetrics {
  bool bitwise_equal = false;  // of one type, and the same bytes
  std::uint64_t unequal = 0;   // elements; NaN equals NaN, 0 equals -0
  std::int64_t first_unequal = -1;
  Unrounded unrounded;           // elements that rounding one side to the other's type does not give
  double l2 = 0;                 // may be NaN or infinite, as in NumPy
  std::optional<double> cosine;  // nothing if exactly one side is zero
  double relative_l2 = 0;        // l2 over the norm of the second side; infinite if only that one is zero
  double max_abs = 0;            // over pairs of finite elements
  std::optional<std::uint64_t> max_ulp;  // of floating-point numbers of one type; only if asked for
  ElementCounts first;
  ElementCounts second;
};

struct MeasureOptions {
  bool ulp = false;
  bool counts = true;  // of NaN, zeros and so on, also of sides that are equal bit for bit
  std::function<void(std::uint64_t)> on_bytes;  // called with the number of bytes read, of both sides
};

/// The parameters have the same number of elements, which are paired in row-major order. Sums run in double
/// over the stored types, scaled where squares would not fit. Throws FormatError or IoError if a side cannot
/// be read.
PairMetrics measure(const Parameter& first, const Parameter& second, const MeasureOptions& options = {});

}  // namespace msprobe::checkpoint
