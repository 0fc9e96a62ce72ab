// SPDX-License-Identifier: Apache-2.0
// Statistics of one tensor: every element type, any strides, one pass, no allocation.
#pragma once

#include <cstdint>
#include <optional>

#include "collector/tensor_view.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::collector {

/// max and min are NaN if an element is, as in PyTorch. Complex numbers count by their modulus, which is a
/// float for complex32 and complex64, as in NumPy. Booleans count as 0 and 1.
struct Measured {
  double max = 0;
  double min = 0;
  double mean = 0;
  double norm = 0;               // 2-norm
  std::int64_t integer_max = 0;  // exact, for integers; for uint64 the same 64 bits
  std::int64_t integer_min = 0;
  std::uint64_t count = 0;
  std::uint64_t zero = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t neg_inf = 0;  // negative ones among these; 0 also if unknown
  std::uint64_t below = 0;    // elements of measure_real() whose magnitude is below its `eps`
};

/// The results that a device computed for a tensor.
struct DeviceResults {
  std::optional<Measured> measured;
  std::optional<std::uint64_t> checksum;  // CRC-32 or xor, whichever was asked for
};

/// Measures a view with at least one element. `crc` (or null) receives the checksum of the element bytes if
/// it costs no second pass, that is, if they are in row-major order.
Measured measure(const TensorView& view, std::optional<std::uint32_t>* crc = nullptr);

/// Converts statistics that were computed elsewhere; each element counts `repetitions` times and, if
/// `negative`, with the other sign.
Measured measured_of(const tensor::Statistics& statistics, std::uint64_t repetitions, bool negative);

/// The same numbers in the form of the training monitor: complex numbers by their real parts, and a norm and
/// a mean without intermediate overflow. `eps` is rounded to float for all types that are not wider than
/// float; without it `below` and `zero` have no meaning.
Measured measure_real(const TensorView& view, std::optional<double> eps);

}  // namespace msprobe::collector
