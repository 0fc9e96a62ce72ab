// SPDX-License-Identifier: Apache-2.0
// Statistics of one tensor: every element type, any strides, one pass, no allocation.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/tensor_view.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::collector {

/// max and min are NaN if an element is, as PyTorch has it. Of complex numbers all is of the modulus; that of
/// complex32 and complex64 is a float, as NumPy has it. Booleans count as 0 and 1.
struct Measured {
  double max = 0;
  double min = 0;
  double mean = 0;
  double norm = 0;               // 2-norm
  std::int64_t integer_max = 0;  // exact, of integers; of uint64 the same 64 bits
  std::int64_t integer_min = 0;
  std::uint64_t count = 0;
  std::uint64_t zero = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t neg_inf = 0;  // of these; 0 also where it is not known
  std::uint64_t below = 0;    // elements of measure_real() whose magnitude is below its `eps`
};

/// What a device measured of a tensor.
struct DeviceResults {
  std::optional<Measured> measured;
  std::optional<std::uint64_t> checksum;  // CRC-32 or xor, whichever was asked for
};

/// Of a view with at least one element. `crc` (or null) receives the checksum of the element bytes if it
/// comes at the cost of one pass: if they lie in row-major order.
Measured measure(const TensorView& view, std::optional<std::uint32_t>* crc = nullptr);

/// The same of statistics that somebody else computed, over elements of which each counts `repetitions` times
/// and, if `negative`, with the other sign.
Measured measured_of(const tensor::Statistics& statistics, std::uint64_t repetitions, bool negative);

/// The same numbers as the training monitor has them: complex ones by their real parts, and a norm and a mean
/// that do not overflow on the way. `eps` is rounded to float for all types that are no wider; without it
/// `below` and `zero` say nothing.
Measured measure_real(const TensorView& view, std::optional<double> eps);

}  // namespace msprobe::collector
