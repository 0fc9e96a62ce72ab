// SPDX-License-Identifier: Apache-2.0
// Computes the differences of two arrays of integers or booleans.
#pragma once

#include <cstdint>

#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

struct IntegerFigures {
  std::uint64_t count = 0;
  std::uint64_t unequal = 0;
  std::uint64_t first_unequal = 0;  // element
  std::int64_t reference_at = 0;    // as large as fits
  std::int64_t device_at = 0;
  std::uint64_t largest = 0;  // difference
  std::int64_t largest_wrapped =
      0;  // largest difference in the device's type, where it wraps as in the Python tool
};

/// Both have the same number of elements, of integer types or bool.
IntegerFigures integer_figures(const TensorOutput& reference, const TensorOutput& device);

}  // namespace msprobe::precheck
