// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "checkpoint/pieces.hpp"
#include "checkpoint/special_numbers.hpp"
#include "tensor/difference.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;
using tensor::DTypeKind;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sums of squares below this may have lost terms to underflow.
constexpr double kSmallSquares = 1e-280;

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// The largest distance of floating-point numbers, counted in steps of the type; `Bits` holds one number.
template <typename Bits>
std::uint64_t largest_step(std::span<const std::byte> a, std::span<const std::byte> b, Bits exponent_mask) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  const auto ordered = [](Bits bits) -> Bits {
    return (bits & kSign) != 0 ? static_cast<Bits>(kSign - (bits & static_cast<Bits>(~kSign)))
                               : static_cast<Bits>(bits + kSign);
  };
  Bits most = 0;
  for (std::size_t i = 0; i + sizeof(Bits) <= a.size(); i += sizeof(Bits)) {
    Bits x = 0;
    Bits y = 0;
    std::memcpy(&x, a.data() + i, sizeof x);
    std::memcpy(&y, b.data() + i, sizeof y);
    const bool x_nan = (x & static_cast<Bits>(~kSign)) > exponent_mask;
    const bool y_nan = (y & static_cast<Bits>(~kSign)) > exponent_mask;
    const Bits p = ordered(x);
    const Bits q = ordered(y);
    const Bits distance = static_cast<Bits>(p > q ? p - q : q - p);
    most = std::max(most, x_nan || y_nan ? Bits{0} : distance);
  }
  return most;
}

bool has_ulp(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

std::uint64_t largest_ulp(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b) {
  switch (dtype) {
    case DType::float64:
      return largest_step<std::uint64_t>(a, b, 0x7ff0000000000000ULL);
    case DType::float32:
      return largest_step<std::uint32_t>(a, b, 0x7f800000U);
    case DType::float16:
      return largest_step<std::uint16_t>(a, b, 0x7c00U);
    default:
      return largest_step<std::uint16_t>(a, b, 0x7f80U);
  }
}

/// Counts half-precision denormals, which become normal numbers when they are widened to float.
std::uint64_t half_denormals(std::span<const std::byte> raw) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + 2 <= raw.size(); i += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, raw.data() + i, sizeof bits);
    count += (bits & 0x7c00U) == 0 && (bits & 0x3ffU) != 0 ? 1 : 0;
  }
  return count;
}

ElementCounts counts_of(const tensor::Statistics& statistics) {
  return {statistics.nan,  statistics.pos_inf + statistics.neg_inf,
          statistics.zero, statistics.denormal,
          statistics.min,  statistics.max};
}

/// A power of two that brings the magnitude near 1, so that scaling is exact.
double scale_for(double magnitude) {
  if (!(magnitude > 0) || !std::isfinite(magnitude)) return 1;
  return std::ldexp(1.0, std::clamp(-std::ilogb(magnitude), -1020, 1020));
}

double largest_magnitude(const tensor::Statistics& statistics) {
  return statistics.count == 0 ? 0 : std::max(std::fabs(statistics.max), std::fabs(statistics.min));
}

struct PairNorms {
  double first = 0;
  double second = 0;
  double difference = 0;
  double cosine = 0;
};

/// The norms from the first pass, if no square left the range of double.
PairNorms plain_norms(const tensor::Difference& difference) {
  PairNorms norms;
  norms.first = std::sqrt(difference.squares_target);
  norms.second = std::sqrt(difference.squares_golden);
  norms.difference = std::sqrt(difference.squares_difference);
  norms.cosine = difference.dot / (norms.first * norms.second);
  return norms;
}

/// The same norms from a second pass over scaled numbers. All numbers are finite.
PairNorms scaled_norms(const Parameter& first, const Parameter& second,
                       const tensor::Difference& difference) {
  const double scale_first = scale_for(largest_magnitude(difference.target));
  const double scale_second = scale_for(largest_magnitude(difference.golden));
  const bool overflow = !std::isfinite(difference.max_abs);
  const double scale =
      overflow
          ? scale_for(std::max(largest_magnitude(difference.target), largest_magnitude(difference.golden))) /
                2
          : scale_for(difference.max_abs);
  double squares_first = 0;
  double squares_second = 0;
  double squares = 0;
  double dot = 0;
  each_pair(first, second, [&](double x, double y) {
    const double a = x * scale_first;
    const double b = y * scale_second;
    const double d = overflow ? x * scale - y * scale : (x - y) * scale;
    squares_first += a * a;
    squares_second += b * b;
    squares += d * d;
    dot += a * b;
  });
  PairNorms norms;
  norms.first = std::sqrt(squares_first) / scale_first;
  norms.second = std::sqrt(squares_second) / scale_second;
  norms.difference = std::sqrt(squares) / scale;
  norms.cosine = dot / (std::sqrt(squares_first) * std::sqrt(squares_second));
  return norms;
}

bool lost_range(double squares, bool is_zero) {
  return !is_zero && !(squares >= kSmallSquares && std::isfinite(squares));
}

void fill_norms(PairMetrics& metrics, const Parameter& first, const Parameter& second,
                const tensor::Difference& difference) {
  const auto bad = [](const ElementCounts& side) { return side.nan + side.infinite; };
  if (metrics.first.nan + metrics.second.nan > 0) {
    metrics.l2 = kNan;
    metrics.cosine = kNan;
    metrics.relative_l2 = kNan;
    return;
  }
  const bool first_zero = metrics.first.zero == difference.target.count;
  const bool second_zero = metrics.second.zero == difference.golden.count;
  if (bad(metrics.first) + bad(metrics.second) > 0) {
    // inf - inf is NaN; inf against anything else is infinite.
    const std::uint64_t paired =
        (metrics.first.infinite + metrics.second.infinite - difference.nonfinite_mismatch) / 2;
    metrics.l2 = paired > difference.infinity_sign_mismatch ? kNan : kInfinity;
    metrics.relative_l2 = metrics.l2;
    if (!first_zero && !second_zero) metrics.cosine = kNan;
    return;
  }
  PairNorms norms = plain_norms(difference);
  if (tensor::work_of(first.dtype, second.dtype) == tensor::Work::real &&
      (lost_range(difference.squares_target, first_zero) ||
       lost_range(difference.squares_golden, second_zero) ||
       lost_range(difference.squares_difference, difference.unequal == 0))) {
    norms = scaled_norms(first, second, difference);
  }
  metrics.l2 = norms.difference;
  metrics.relative_l2 = norms.difference == 0 ? 0
                        : norms.second == 0   ? kInfinity
                                              : norms.difference / norms.second;
  if (difference.unequal == 0 || (first_zero && second_zero)) {
    metrics.cosine = 1.0;
  } else if (!first_zero && !second_zero) {
    metrics.cosine = std::clamp(norms.cosine, -1.0, 1.0);
  }
}

/// Complex elements arrive as two numbers each, but elements are counted and reported.
class ComplexCounter {
 public:
  template <typename T>
  void add(std::span<const T> x, std::span<const T> y) {
    const auto same = [](T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (std::size_t i = 0; i + 1 < x.size(); i += 2, ++seen_) {
      if (same(x[i], y[i]) && same(x[i + 1], y[i + 1])) continue;
      if (unequal_++ == 0) first_ = seen_;
    }
  }
  void put_into(PairMetrics& metrics) const {
    metrics.unequal = unequal_;
    metrics.first_unequal = first_;
  }

 private:
  std::int64_t seen_ = 0;
  std::uint64_t unequal_ = 0;
  std::int64_t first_ = -1;
};

/// True if any of the floating-point numbers is NaN or infinite. Uses special_signs() for 8 bytes at a time.
bool any_special(std::span<const std::byte> raw, std::uint64_t exponent, std::uint64_t last) {
  const std::uint64_t sign = exponent + last;
  // Blocks of a fixed size become vector instructions.
  std::array<std::uint64_t, 64> block{};
  while (!raw.empty()) {
    const std::size_t count = std::min(sizeof block, raw.size());
    if (count < sizeof block) block.fill(0);
    std::memcpy(block.data(), raw.data(), count);
    std::uint64_t any = 0;
    for (const std::uint64_t bits : block) any |= special_signs(bits, exponent, last);
    if ((any & sign) != 0) return true;
    raw = raw.subspan(count);
  }
  return false;
}

/// The exponents of the numbers in 8 bytes and their last bits, for types whose exponent alone marks NaN and
/// infinity.
std::optional<std::pair<std::uint64_t, std::uint64_t>> exponents_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return std::pair{0x7ff0000000000000ULL, 0x0010000000000000ULL};
    case DType::float32:
    case DType::complex64:
      return std::pair{0x7f8000007f800000ULL, 0x0080000000800000ULL};
    case DType::float16:
      return std::pair{0x7c007c007c007c00ULL, 0x0400040004000400ULL};
    case DType::bfloat16:
      return std::pair{0x7f807f807f807f80ULL, 0x0080008000800080ULL};
    default:
      return {};
  }
}

/// True if both are the same bytes of one file, as with hard links.
bool is_one_place(const Parameter& first, const Parameter& second) {
  const auto same = [](const ParameterBlock& a, const ParameterBlock& b) {
    if (a.view != b.view || a.begin != b.begin || a.size != b.size || a.axes != b.axes ||
        a.offset != b.offset)
      return false;
    const formats::StoredTensor x = (*a.source)();
    const formats::StoredTensor y = (*b.source)();
    const auto place = x.storage->place();
    return place && place == y.storage->place() && x.offset == y.offset && x.shape == y.shape &&
           x.strides == y.strides && x.dtype == y.dtype && x.big_endian == y.big_endian &&
           x.conjugate == y.conjugate && x.negative == y.negative;
  };
  return first.dtype == second.dtype && first.shape == second.shape &&
         std::ranges::equal(first.blocks, second.blocks, same);
}

/// Stops at the first piece that differs. The bytes are not decoded, except that `special` says whether
/// numbers are NaN or infinite.
bool is_equal(const Parameter& first, const Parameter& second, const MeasureOptions& options, bool& special) {
  bool equal = true;
  const auto exponents = exponents_of(first.dtype);
  each_raw_piece(first, second, is_one_place(first, second), options,
                 [&](std::span<const std::byte> x, std::span<const std::byte> y) {
                   equal = x.data() == y.data() || same_bytes(x, y);
                   if (equal && !special && exponents)
                     special = any_special(x, exponents->first, exponents->second);
                   return equal;
                 });
  return equal;
}

/// True if the bits show NaN and infinity, or if the type has neither. Other types are rare.
bool is_told_by_bits(DType dtype) {
  const DTypeKind kind = tensor::info(dtype).kind;
  return kind == DTypeKind::integer || kind == DTypeKind::boolean || exponents_of(dtype);
}

/// Measures parameters that are equal bit for bit. Returns false at the first piece that is not; `seen` is
/// then the number of bytes that were reported to `on_bytes`.
bool measure_equal(const Parameter& first, const Parameter& second, const MeasureOptions& options,
                   PairMetrics& metrics, std::uint64_t& seen) {
  struct Differs {};
  MeasureOptions counted = options;
  if (options.on_bytes) {
    counted.on_bytes = [&](std::uint64_t bytes) {
      seen += bytes;
      options.on_bytes(bytes);
    };
  }
  const auto fill = [&](bool finite) {
    metrics.bitwise_equal = true;
    if (options.ulp && has_ulp(first.dtype)) metrics.max_ulp = 0;
    metrics.l2 = finite ? 0 : kNan;
    metrics.relative_l2 = metrics.l2;
    metrics.cosine = finite ? 1.0 : kNan;
  };
  if (!options.counts && is_told_by_bits(first.dtype)) {
    bool special = false;
    if (!is_equal(first, second, counted, special)) return false;
    fill(!special);
    return true;
  }
  std::uint64_t halves = 0;
  try {
    const tensor::Statistics statistics = with_work_type(first, second, [&]<typename T>(T) {
      tensor::StatisticsAccumulator accumulator;
      each_piece<T>(first, second, counted, [&](auto x, auto, auto stored_x, auto stored_y) {
        if (!same_bytes(stored_x, stored_y)) throw Differs{};
        accumulator.add(x);
        if (options.ulp && first.dtype == DType::float16) halves += half_denormals(stored_x);
      });
      return accumulator.finish();
    });
    metrics.first = counts_of(statistics);
  } catch (const Differs&) {
    return false;
  }
  metrics.first.denormal += halves;
  metrics.second = metrics.first;
  fill(metrics.first.nan + metrics.first.infinite == 0);
  return true;
}

}  // namespace

PairMetrics measure(const Parameter& first, const Parameter& second, const MeasureOptions& options) {
  PairMetrics metrics;
  // Most pairs should be equal, and this check takes half the work.
  std::uint64_t seen = 0;
  if (first.numel() > 0 && first.dtype == second.dtype &&
      measure_equal(first, second, options, metrics, seen)) {
    return metrics;
  }
  MeasureOptions rest = options;
  if (options.on_bytes) {
    rest.on_bytes = [&](std::uint64_t bytes) {
      const std::uint64_t told = std::min(seen, bytes);
      seen -= told;
      options.on_bytes(bytes - told);
    };
  }
  metrics.bitwise_equal = first.dtype == second.dtype;
  if (first.numel() == 0) {
    metrics.cosine = 1.0;
    return metrics;
  }
  const bool ulp = options.ulp && first.dtype == second.dtype && has_ulp(first.dtype);
  std::uint64_t most = 0;
  std::array<std::uint64_t, 2> halves{};
  const bool any_complex = is_complex(first.dtype) || is_complex(second.dtype);
  ComplexCounter elements;
  RoundingCheck rounding(first.dtype, second.dtype);
  const tensor::Difference difference = with_work_type(first, second, [&]<typename T>(T) {
    tensor::DifferenceAccumulator accumulator;
    each_piece<T>(first, second, rest, [&](auto x, auto y, auto stored_x, auto stored_y) {
      accumulator.add(x, y);
      if constexpr (std::is_floating_point_v<T>) {
        if (any_complex) elements.add<T>(x, y);
        rounding.add(x, y);
      }
      const bool same = same_bytes(stored_x, stored_y);
      metrics.bitwise_equal = metrics.bitwise_equal && same;
      if (ulp && !same) most = std::max(most, largest_ulp(first.dtype, stored_x, stored_y));
      if (options.ulp && first.dtype == DType::float16) halves[0] += half_denormals(stored_x);
      if (options.ulp && second.dtype == DType::float16) halves[1] += half_denormals(stored_y);
    });
    return accumulator.finish();
  });
  if (ulp) metrics.max_ulp = most;
  metrics.unequal = difference.unequal;
  metrics.first_unequal = difference.first_unequal;
  if (any_complex) elements.put_into(metrics);
  metrics.unrounded = rounding.result();
  metrics.max_abs = difference.max_abs;
  metrics.first = counts_of(difference.target);
  metrics.second = counts_of(difference.golden);
  fill_norms(metrics, first, second, difference);
  metrics.first.denormal += halves[0];
  metrics.second.denormal += halves[1];
  return metrics;
}

}  // namespace msprobe::checkpoint
