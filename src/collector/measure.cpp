// SPDX-License-Identifier: Apache-2.0
#include "collector/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "support/crc32.hpp"
#include "tensor/convert.hpp"
#include "tensor/isa.hpp"
#include "tensor/statistics_pass.hpp"
#include "tensor/strided.hpp"

namespace msprobe::collector {
namespace {

using tensor::DType;

constexpr std::size_t kWidened = 1024;  // elements that are widened at a time
constexpr std::size_t kCachedBytes = std::size_t{32} << 10;

const tensor::Kernels& kernels() {
  static const tensor::Kernels& kBest = tensor::kernels_for(tensor::best_isa());
  return kBest;
}

/// Passes runs of elements to `feed(pointer, n)`; n is at most kWidened if elements have to be gathered.
template <typename Feed>
void each_stretch(const TensorView& view, const VisitOrder& walk, std::size_t most, std::uint32_t* crc,
                  Feed pass) {
  const std::size_t size = view.element_size();
  const auto feed = [&](const std::byte* from, std::size_t n) {
    pass(from, n);
    // The checksum follows while the elements are in the cache.
    if (crc != nullptr) *crc = crc32(*crc, std::span(from, n * size));
  };
  if (crc != nullptr) most = std::min(most, kCachedBytes / size);
  const auto length = static_cast<std::size_t>(walk.inner_length());
  if (walk.inner_stride() == 1) {
    walk.each_run(size, [&](const std::byte* from) {
      for (std::size_t done = 0; done < length; done += most)
        feed(from + done * size, std::min(most, length - done));
    });
    return;
  }
  alignas(64) std::array<std::byte, kWidened * 16> buffer;
  const std::int64_t step = walk.inner_stride() * static_cast<std::int64_t>(size);
  walk.each_run(size, [&](const std::byte* from) {
    for (std::size_t done = 0; done < length; done += kWidened) {
      const std::size_t n = std::min(kWidened, length - done);
      tensor::gather(from + static_cast<std::int64_t>(done) * step, step, size, n, buffer.data());
      feed(buffer.data(), n);
    }
  });
}

Measured finish(const tensor::Statistics& statistics, std::uint64_t repetitions) {
  Measured result;
  result.count = statistics.count * repetitions;
  result.zero = statistics.zero * repetitions;
  result.nan = statistics.nan * repetitions;
  result.inf = (statistics.pos_inf + statistics.neg_inf) * repetitions;
  result.neg_inf = statistics.neg_inf * repetitions;
  result.below = (statistics.zero + statistics.denormal) * repetitions;
  result.integer_max = statistics.integer_max;
  result.integer_min = statistics.integer_min;
  result.mean = statistics.mean();
  result.norm = std::sqrt(statistics.sum_of_squares * static_cast<double>(repetitions));
  result.max = statistics.max;
  result.min = statistics.min;
  if (statistics.nan > 0) {
    result.max = result.min = result.mean = result.norm = std::numeric_limits<double>::quiet_NaN();
  }
  return result;
}

/// Measures elements that widen(bytes, n, out) converts to a working type. Elements below `small` count as
/// small; without it they are not counted.
template <typename T, typename Widen>
Measured measure_widened(const TensorView& view, std::uint32_t* crc, Widen widen,
                         std::optional<T> small = std::numeric_limits<T>::min()) {
  const VisitOrder walk = walk_in_memory(view);
  tensor::StatisticsPass<T> pass(kernels(), small);
  std::array<T, kWidened> buffer;
  each_stretch(view, walk, kWidened, crc, [&](const std::byte* from, std::size_t n) {
    widen(from, n, buffer.data());
    pass.add(std::span<const T>(buffer.data(), n));
  });
  return finish(pass.finish(), walk.repetitions);
}

/// Measures elements that the kernels accept unchanged.
template <typename T>
Measured measure_native(const TensorView& view, std::uint32_t* crc,
                        std::optional<T> small = std::numeric_limits<T>::min()) {
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignof(T) != 0) {
    const auto copy = [](const std::byte* from, std::size_t n, T* out) {
      std::memcpy(out, from, n * sizeof(T));
    };
    return measure_widened<T>(view, crc, copy, small);
  }
  const VisitOrder walk = walk_in_memory(view);
  tensor::StatisticsPass<T> pass(kernels(), small);
  each_stretch(view, walk, SIZE_MAX, crc, [&](const std::byte* from, std::size_t n) {
    pass.add(std::span(reinterpret_cast<const T*>(from), n));
  });
  return finish(pass.finish(), walk.repetitions);
}

template <typename T>
Measured measure_small_integer(const TensorView& view, std::uint32_t* crc) {
  return measure_widened<std::int64_t>(view, crc,
                                       [](const std::byte* from, std::size_t n, std::int64_t* out) {
                                         for (std::size_t i = 0; i < n; ++i) {
                                           T value;
                                           std::memcpy(&value, from + i * sizeof value, sizeof value);
                                           out[i] = std::int64_t{value};
                                         }
                                       });
}

/// Measures complex numbers by the number that combine(real, imaginary) makes of each.
template <typename T, typename Combine>
Measured measure_complex(const TensorView& view, std::uint32_t* crc, Combine combine,
                         std::optional<T> small = std::numeric_limits<T>::min()) {
  return measure_widened<T>(
      view, crc,
      [&](const std::byte* from, std::size_t n, T* out) {
        std::array<double, 2 * kWidened> parts;
        tensor::to_double(view.dtype, std::span(from, n * view.element_size()),
                          std::span(parts.data(), 2 * n));
        for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(combine(parts[2 * i], parts[2 * i + 1]));
      },
      small);
}

/// An infinite part makes the modulus infinite, even if the other is NaN.
template <typename T>
double modulus(double real, double imaginary) {
  if (std::isinf(real) || std::isinf(imaginary)) return std::numeric_limits<double>::infinity();
  return std::is_same_v<T, float> ? std::sqrt(real * real + imaginary * imaginary)
                                  : std::hypot(real, imaginary);
}

/// A NaN in the imaginary part makes the element NaN.
double real_part(double real, double imaginary) {
  return std::isnan(imaginary) ? imaginary : real;
}

Measured measure_boolean(const TensorView& view, std::uint32_t* crc) {
  const VisitOrder walk = walk_in_memory(view);
  std::uint64_t nonzero = 0;
  each_stretch(view, walk, SIZE_MAX, crc, [&](const std::byte* from, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) nonzero += from[i] != std::byte{0} ? 1U : 0U;
  });
  nonzero *= walk.repetitions;
  Measured result;
  result.count = view.count;
  result.zero = view.count - nonzero;
  result.integer_max = nonzero > 0 ? 1 : 0;
  result.integer_min = result.zero == 0 ? 1 : 0;
  result.max = static_cast<double>(result.integer_max);
  result.min = static_cast<double>(result.integer_min);
  result.mean = static_cast<double>(nonzero) / static_cast<double>(view.count);
  result.norm = std::sqrt(static_cast<double>(nonzero));
  return result;
}

Measured measure_narrow_float(const TensorView& view, std::uint32_t* crc, std::optional<float> small) {
  return measure_widened<float>(
      view, crc,
      [&](const std::byte* from, std::size_t n, float* out) {
        tensor::to_float(view.dtype, std::span(from, n * view.element_size()), std::span(out, n));
      },
      small);
}

Measured measure_as_stored(const TensorView& view, std::uint32_t* crc) {
  switch (view.dtype) {
    case DType::float64:
      return measure_native<double>(view, crc);
    case DType::float32:
      return measure_native<float>(view, crc);
    case DType::int64:
      return measure_native<std::int64_t>(view, crc);
    case DType::uint64:
      return measure_native<std::uint64_t>(view, crc);
    case DType::int32:
    case DType::qint32:
      return measure_small_integer<std::int32_t>(view, crc);
    case DType::int16:
      return measure_small_integer<std::int16_t>(view, crc);
    case DType::int8:
    case DType::qint8:
      return measure_small_integer<std::int8_t>(view, crc);
    case DType::uint32:
      return measure_small_integer<std::uint32_t>(view, crc);
    case DType::uint16:
      return measure_small_integer<std::uint16_t>(view, crc);
    case DType::uint8:
    case DType::quint8:
      return measure_small_integer<std::uint8_t>(view, crc);
    case DType::boolean:
      return measure_boolean(view, crc);
    case DType::complex32:
    case DType::complex64:
      return measure_complex<float>(view, crc, modulus<float>);
    case DType::complex128:
      return measure_complex<double>(view, crc, modulus<double>);
    default:
      break;
  }
  return measure_narrow_float(view, crc, std::numeric_limits<float>::min());
}

Measured measure_real_elements(const TensorView& view, std::optional<double> eps) {
  std::optional<float> narrow;
  if (eps) narrow = static_cast<float>(*eps);
  switch (view.dtype) {
    case DType::float64:
      return measure_native<double>(view, nullptr, eps);
    case DType::float32:
      return measure_native<float>(view, nullptr, narrow);
    case DType::complex128:
      return measure_complex<double>(view, nullptr, real_part, eps);
    case DType::complex64:
    case DType::complex32:
      return measure_complex<float>(view, nullptr, real_part, narrow);
    default:
      break;
  }
  if (tensor::info(view.dtype).kind == tensor::DTypeKind::floating)
    return measure_narrow_float(view, nullptr, narrow);
  Measured result = measure_as_stored(view, nullptr);
  if (!eps) return result;
  if (*eps > 1 && view.dtype != DType::boolean) {
    result.below =
        measure_widened<double>(
            view, nullptr,
            [&](const std::byte* from, std::size_t n, double* out) {
              tensor::to_double(view.dtype, std::span(from, n * view.element_size()), std::span(out, n));
            },
            eps)
            .below;
  } else {
    result.below = *eps > 0 ? result.zero : 0;
  }
  return result;
}

/// Sums again over elements scaled near 1, because squares of doubles can leave the range of double.
void rescale_sums(const TensorView& view, Measured& result) {
  const double largest = std::max(std::abs(result.max), std::abs(result.min));
  if (largest == 0 || !std::isfinite(largest)) return;
  const bool in_range = std::isfinite(result.norm) && std::isfinite(result.mean) && result.norm > 1e-140;
  if (in_range) return;
  const int exponent = std::ilogb(largest);
  const Measured scaled =
      measure_widened<double>(view, nullptr, [&](const std::byte* from, std::size_t n, double* out) {
        const std::size_t stride = view.element_size();
        for (std::size_t i = 0; i < n; ++i) {
          std::memcpy(out + i, from + i * stride, sizeof *out);
          out[i] = std::scalbn(out[i], -exponent);
        }
      });
  result.norm = std::scalbn(scaled.norm, exponent);
  result.mean = std::scalbn(scaled.mean, exponent);
}

/// Changes the sign of all elements.
void negate(Measured& result) {
  result.max = -std::exchange(result.min, -result.max);
  result.mean = -result.mean;
  result.neg_inf = result.inf - result.neg_inf;
}

}  // namespace

Measured measured_of(const tensor::Statistics& statistics, std::uint64_t repetitions, bool negative) {
  Measured result = finish(statistics, repetitions);
  if (negative) negate(result);
  return result;
}

Measured measure(const TensorView& view, std::optional<std::uint32_t>* crc) {
  std::uint32_t sum = 0;
  const bool together = crc != nullptr && view.plain();
  Measured result = measure_as_stored(view, together ? &sum : nullptr);
  if (together) *crc = sum;
  if (view.negative && tensor::info(view.dtype).kind == tensor::DTypeKind::floating) negate(result);
  return result;
}

Measured measure_real(const TensorView& view, std::optional<double> eps) {
  Measured result = measure_real_elements(view, eps);
  if (view.dtype == DType::float64 || view.dtype == DType::complex128) rescale_sums(view, result);
  const tensor::DTypeKind kind = tensor::info(view.dtype).kind;
  if (view.negative && (kind == tensor::DTypeKind::floating || kind == tensor::DTypeKind::complex))
    negate(result);
  return result;
}

}  // namespace msprobe::collector
