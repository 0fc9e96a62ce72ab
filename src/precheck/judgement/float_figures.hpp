// SPDX-License-Identifier: Apache-2.0
// The figures of two arrays of floating-point elements: those that the Python tool shows, and those by which
// msprobe judges.
#pragma once

#include <cstdint>

#include "precheck/judgement/output.hpp"
#include "tensor/isa.hpp"

namespace msprobe::precheck {

/// The figures that are computed only on request.
struct FloatRequest {
  double small_value = 0;         // references up to it are small
  double small_tolerance = 0;     // of the absolute error of small ones
  double relative_tolerance = 0;  // of all others
  double ulp_threshold = 0;
  bool sorts = false;  // small and normal elements, above and below
  bool means = false;  // of relative errors and squares; with `sorts`
  bool ulp = false;    // in the Python tool's units
};

/// A NaN among the numbers whose maximum the Python tool takes makes that figure NaN.
struct FloatFigures {
  bool single = false;      // the Python tool works in float
  bool ulp_single = false;  // also with units in the last place
  std::uint64_t count = 0;

  // Figures of both sides.
  double max_reference = 0;
  double max_device = 0;
  double cosine = 0;  // NaN where an element is NaN or infinite
  double max_absolute = 0;
  std::uint64_t within_hundredth = 0;
  std::uint64_t within_thousandth = 0;
  std::uint64_t within_ten_thousandth = 0;
  std::uint64_t unequal = 0;
  std::uint64_t zeros = 0;  // of the device
  std::uint64_t above = 0;  // the device is greater than the reference, rounded to the device's type
  std::uint64_t below = 0;

  // Figures on request: an element is small, normal, or NaN or infinite on one side.
  std::uint64_t small = 0;
  std::uint64_t normal = 0;
  std::uint64_t nonfinite = 0;
  std::uint64_t small_errors = 0;
  std::uint64_t relative_errors = 0;
  std::uint64_t nonfinite_errors = 0;
  double max_relative = 0;  // of normal ones
  double mean_relative = 0;
  double mean_square = 0;  // over all elements; those that are not normal count as 0
  double max_ulp = 0;
  double mean_ulp = 0;
  std::uint64_t ulp_above = 0;

  // msprobe's figures, in units of the last place of the device's type at the larger of the reference and of
  // its root mean square.
  double max_units = 0;
  std::uint64_t max_units_at = 0;  // element
  double max_units_error = 0;      // its absolute error
  double reference_at = 0;
  double device_at = 0;
  std::uint64_t wrong = 0;                 // elements that have no correct digit
  std::uint64_t nonfinite_unequal = 0;     // NaN or infinite on one side, or of another sign
  std::uint64_t nonfinite_unequal_at = 0;  // the first of them
  double nonfinite_reference_at = 0;
  double nonfinite_device_at = 0;
};

/// Computes the figures. Both tensors have the same number of elements of floating-point types (complex ones
/// are pairs of real ones). The figures do not depend on the instruction set.
FloatFigures float_figures(const TensorOutput& reference, const TensorOutput& device,
                           const FloatRequest& request, tensor::Isa isa = tensor::best_isa());

}  // namespace msprobe::precheck
