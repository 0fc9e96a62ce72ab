// SPDX-License-Identifier: Apache-2.0
#include "precheck/judgement/float_figures.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>

#include "precheck/judgement/pairwise_sum.hpp"
#include "support/interrupt.hpp"
#include "tensor/convert.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::precheck {
namespace {

using tensor::DType;

constexpr std::size_t kPiece = 1024;
constexpr double kBfloat16Largest = 3.3895313892515355e38;
// A digit is correct if less than this of the value is wrong.
constexpr double kFirstDigit = 0.25;

template <typename T>
struct Bits;
template <>
struct Bits<float> {
  using Int = std::int32_t;
  static constexpr int kFraction = 23;
  static constexpr Int kExponents = 0xff;
  static constexpr Int kBias = 127;
};
template <>
struct Bits<double> {
  using Int = std::int64_t;
  static constexpr int kFraction = 52;
  static constexpr Int kExponents = 0x7ff;
  static constexpr Int kBias = 1023;
};

/// floor(log2 |x|); less than that of any normal number for 0 and denormal ones, more for NaN and infinity.
template <typename T>
typename Bits<T>::Int exponent_of(T x) {
  using B = Bits<T>;
  return ((std::bit_cast<typename B::Int>(x) >> B::kFraction) & B::kExponents) - B::kBias;
}

/// 2 to the power of an exponent; infinity beyond the type's range, 0 below that of normal numbers.
template <typename T>
T power_of_two(typename Bits<T>::Int exponent) {
  using B = Bits<T>;
  const auto field = std::clamp<typename B::Int>(exponent + B::kBias, 0, B::kExponents);
  return std::bit_cast<T>(static_cast<typename B::Int>(field << B::kFraction));
}

/// The element nearest to `x` in IEEE half precision, as a float.
float nearest_half(float x) {
  constexpr std::uint32_t kSign = 0x80000000U;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const float size = std::bit_cast<float>(bits & ~kSign);
  // Below 2^-14 neighbours are 2^-24 apart, as those of float around 0.5.
  const float denormal = (size + 0.5F) - 0.5F;
  const std::uint32_t magnitude = bits & ~kSign;
  const float normal = std::bit_cast<float>((magnitude + 0xfffU + ((magnitude >> 13) & 1U)) & ~0x1fffU);
  float rounded = size < 0x1p-14F ? denormal : normal;
  if (size >= 65520.0F) rounded = size == size ? std::numeric_limits<float>::infinity() : size;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded) | (bits & kSign));
}

/// How the device's type counts.
struct DeviceForm {
  bool rounds_half = false;    // to float16
  bool rounds_single = false;  // to float, from double
  double largest = 0;          // finite value, as the Python tool has it
  int fraction = 0;
  int least = 0;  // exponent
};

/// The type of the real numbers that an element is made of.
DType real_type(DType dtype) {
  switch (dtype) {
    case DType::complex32:
      return DType::float16;
    case DType::complex64:
      return DType::float32;
    case DType::complex128:
      return DType::float64;
    default:
      return dtype;
  }
}

DeviceForm form_of(DType dtype) {
  DeviceForm form;
  const auto known = tensor::float_form(dtype);
  form.fraction = known ? known->fraction : 23;
  form.least = known ? known->least : -126;
  form.rounds_half = dtype == DType::float16;
  form.rounds_single = dtype != DType::float64;
  form.largest = dtype == DType::float16    ? 65504.0
                 : dtype == DType::bfloat16 ? kBfloat16Largest
                 : form.rounds_single       ? static_cast<double>(std::numeric_limits<float>::max())
                                            : std::numeric_limits<double>::max();
  return form;
}

/// Elements of one side, a piece at a time.
template <typename T>
class Elements {
 public:
  Elements(const TensorOutput& tensor, std::uint64_t count)
      : tensor_(tensor), size_(tensor.bytes.size() / count) {}

  void read(std::uint64_t at, std::span<T> out) const {
    const std::span<const std::byte> raw =
        tensor_.bytes.subspan(static_cast<std::size_t>(at) * size_, out.size() * size_);
    convert(real_type(tensor_.dtype), raw, out);
  }

 private:
  static void convert(DType dtype, std::span<const std::byte> raw, std::span<T> out) {
    if constexpr (std::is_same_v<T, float>) {
      tensor::to_float(dtype, raw, out);
    } else {
      tensor::to_double(dtype, raw, out);
    }
  }

  const TensorOutput& tensor_;
  std::size_t size_;
};

/// Two passes: what the second one has to know of the whole first.
template <typename T>
class FloatPass {
 public:
  FloatPass(const TensorOutput& reference, const TensorOutput& device, std::uint64_t count,
            const FloatRequest& request)
      : request_(request),
        form_(form_of(real_type(device.dtype))),
        epsilon_(device.dtype == DType::bfloat16 ? T{0x1p-8} : std::numeric_limits<T>::epsilon()),
        reference_(reference, count),
        device_(device, count) {
    figures_.single = std::is_same_v<T, float>;
    figures_.count = count;
  }

  FloatFigures run() {
    each_piece([&](std::uint64_t, std::size_t n) { look(n); });
    finish_look();
    PairwiseSum<T> relatives(request_.means ? figures_.normal : 0);
    PairwiseSum<T> squares(request_.means ? figures_.count : 0);
    PairwiseSum<T> ulps(request_.ulp ? figures_.count : 0);
    each_piece([&](std::uint64_t at, std::size_t n) {
      errors(n);
      if (request_.means) means(n, relatives, squares);
      if (request_.ulp) ulp(n, ulps);
      units(at, n);
      if (has_odd_) odd(at, n);
    });
    if (any_nan_) figures_.max_absolute = std::nan("");
    if (figures_.normal != 0) figures_.mean_relative = relatives.total() / static_cast<T>(figures_.normal);
    figures_.mean_square = squares.total() / static_cast<T>(figures_.count);
    figures_.mean_ulp = ulps.total() / static_cast<T>(figures_.count);
    if (std::isnan(figures_.mean_ulp)) figures_.max_ulp = figures_.mean_ulp;
    return figures_;
  }

 private:
  using Int = typename Bits<T>::Int;

  template <typename Body>
  void each_piece(const Body& body) {
    for (std::uint64_t at = 0; at < figures_.count; at += kPiece) {
      if (at % (std::uint64_t{1} << 24) == 0) check_interrupt();
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, figures_.count - at));
      reference_.read(at, std::span(b_).first(n));
      device_.read(at, std::span(d_).first(n));
      round(n);
      body(at, n);
    }
  }

  /// References as the device's type has them.
  void round(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      if (form_.rounds_half) {
        rounded_[i] = static_cast<T>(nearest_half(static_cast<float>(b_[i])));
      } else if (form_.rounds_single) {
        rounded_[i] = static_cast<T>(static_cast<float>(b_[i]));
      } else {
        rounded_[i] = b_[i];
      }
    }
  }

  static bool finite(T x) { return std::fabs(x) <= std::numeric_limits<T>::max(); }

  void look(std::size_t n) {
    const T small_value = static_cast<T>(request_.small_value);
    for (std::size_t i = 0; i < n; ++i) {
      const bool both = finite(rounded_[i]) && finite(d_[i]);
      const T size_b = std::fabs(b_[i]);
      const T size_d = std::fabs(d_[i]);
      const bool own = finite(b_[i]) && finite(d_[i]);
      nan_reference_ |= b_[i] != b_[i];
      nan_device_ |= d_[i] != d_[i];
      max_reference_ = size_b > max_reference_ ? size_b : max_reference_;
      max_device_ = size_d > max_device_ ? size_d : max_device_;
      all_finite_ &= own;
      const double b = own ? static_cast<double>(b_[i]) * scale_reference_ : 0.0;
      const double d = own ? static_cast<double>(d_[i]) * scale_device_ : 0.0;
      sum_bb_ += b * b;
      sum_dd_ += d * d;
      sum_bd_ += b * d;
      counted_ += own;
      const bool small = both && size_b <= small_value;
      figures_.small += small;
      figures_.normal += both && !small;
    }
  }

  void finish_look() {
    constexpr double kLargestSquare = 1e140;
    constexpr double kSmallestSquare = 1e-140;
    const auto strange = [&](T max) { return max != 0 && (max > kLargestSquare || max < kSmallestSquare); };
    if (scale_reference_ == 1 && scale_device_ == 1 && all_finite_ &&
        (strange(max_reference_) || strange(max_device_))) {
      // Squares would overflow or vanish: once more, with both sides' maxima near 1.
      scale_reference_ = max_reference_ != 0 ? 1 / static_cast<double>(max_reference_) : 1;
      scale_device_ = max_device_ != 0 ? 1 / static_cast<double>(max_device_) : 1;
      if (!std::isfinite(scale_reference_)) scale_reference_ = 0x1p1000;
      if (!std::isfinite(scale_device_)) scale_device_ = 0x1p1000;
      sum_bb_ = sum_dd_ = sum_bd_ = 0;
      counted_ = figures_.small = figures_.normal = 0;
      each_piece([&](std::uint64_t, std::size_t n) { look(n); });
    }
    figures_.odd = figures_.count - figures_.small - figures_.normal;
    has_odd_ = figures_.odd != 0 || !all_finite_;
    figures_.max_reference = nan_reference_ ? std::nan("") : static_cast<double>(max_reference_);
    figures_.max_device = nan_device_ ? std::nan("") : static_cast<double>(max_device_);
    figures_.cosine = all_finite_ ? sum_bd_ / (std::sqrt(sum_bb_) * std::sqrt(sum_dd_)) : std::nan("");
    const double mean_square =
        counted_ == 0 ? 0 : std::sqrt(sum_bb_ / static_cast<double>(counted_)) / scale_reference_;
    int exponent = form_.least;
    if (mean_square > 0 && std::isfinite(mean_square)) exponent = std::max(exponent, std::ilogb(mean_square));
    // The unit's reciprocal has to be a number.
    least_unit_ = static_cast<Int>(std::max(exponent, form_.fraction - static_cast<int>(Bits<T>::kBias)));
  }

  void errors(std::size_t n) {
    const T tolerance = static_cast<T>(request_.small_tolerance);
    const T relative_tolerance = static_cast<T>(request_.relative_tolerance);
    const T small_value = static_cast<T>(request_.small_value);
    T max_absolute = static_cast<T>(figures_.max_absolute);
    T max_relative = static_cast<T>(figures_.max_relative);
    for (std::size_t i = 0; i < n; ++i) {
      const T size = std::fabs(b_[i]);
      const T error = std::fabs(d_[i] - b_[i]);
      const T relative = error / (size + epsilon_);
      absolute_[i] = error;
      relative_[i] = relative;
      any_nan_ |= error != error;
      max_absolute = error > max_absolute ? error : max_absolute;
      figures_.within_hundredth += relative < static_cast<T>(0.01);
      figures_.within_thousandth += relative < static_cast<T>(0.001);
      figures_.within_ten_thousandth += relative < static_cast<T>(0.0001);
      figures_.zeros += d_[i] == 0;
      figures_.unequal += b_[i] != d_[i];
      figures_.above += d_[i] > rounded_[i];
      figures_.below += d_[i] < rounded_[i];
      const bool both = finite(rounded_[i]) && finite(d_[i]);
      const bool small = both && size <= small_value;
      const bool normal = both && !small;
      normal_[i] = normal;
      figures_.small_errors += small && error > tolerance;
      figures_.relative_errors += normal && relative > relative_tolerance;
      max_relative = normal && relative > max_relative ? relative : max_relative;
    }
    figures_.max_absolute = static_cast<double>(max_absolute);
    figures_.max_relative = static_cast<double>(max_relative);
  }

  void means(std::size_t n, PairwiseSum<T>& relatives, PairwiseSum<T>& squares) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      scratch_[kept] = relative_[i];
      kept += normal_[i];
    }
    relatives.add(scratch_.data(), kept);
    for (std::size_t i = 0; i < n; ++i) scratch_[i] = normal_[i] ? absolute_[i] * absolute_[i] : T{0};
    squares.add(scratch_.data(), n);
  }

  void ulp(std::size_t n, PairwiseSum<T>& sum) {
    const auto least = static_cast<Int>(form_.least);
    const auto fraction = static_cast<Int>(form_.fraction);
    const T threshold = static_cast<T>(request_.ulp_threshold);
    T max = static_cast<T>(figures_.max_ulp);
    for (std::size_t i = 0; i < n; ++i) {
      const Int own = exponent_of(b_[i]);
      // The Python tool takes the logarithm of 0 as 0, and that of infinity as infinity.
      const Int exponent = b_[i] == 0 ? std::max<Int>(0, least) : std::max(own, least);
      const T unit = own > Bits<T>::kBias ? T{0} : power_of_two<T>(fraction - exponent);
      const T error = absolute_[i] * unit;
      scratch_[i] = error;
      max = error > max ? error : max;
      figures_.ulp_above += error > threshold;
    }
    figures_.max_ulp = static_cast<double>(max);
    sum.add(scratch_.data(), n);
  }

  void units(std::uint64_t at, std::size_t n) {
    const auto fraction = static_cast<Int>(form_.fraction);
    const T least_told = static_cast<T>(std::ldexp(1.0, std::max(form_.least, -1000) + 1));
    T max = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const T size = std::fabs(b_[i]);
      const Int exponent = std::max(exponent_of(b_[i]), least_unit_);
      const bool both = finite(b_[i]) && finite(d_[i]);
      T error = both ? absolute_[i] * power_of_two<T>(fraction - exponent) : T{0};
      // What overflows in the device's type is no error of its making.
      error = d_[i] == rounded_[i] ? T{0} : error;
      scratch_[i] = error;
      max = error > max ? error : max;
      const T larger = size > std::fabs(d_[i]) ? size : std::fabs(d_[i]);
      figures_.wrong += both && larger > least_told && absolute_[i] > static_cast<T>(kFirstDigit) * larger &&
                        d_[i] != rounded_[i];
    }
    if (!(static_cast<double>(max) > figures_.max_units)) return;
    figures_.max_units = static_cast<double>(max);
    const auto worst = static_cast<std::size_t>(
        std::find(scratch_.begin(), scratch_.begin() + static_cast<std::ptrdiff_t>(n), max) -
        scratch_.begin());
    figures_.max_units_at = at + worst;
    figures_.max_units_error = static_cast<double>(absolute_[worst]);
    figures_.reference_at = static_cast<double>(b_[worst]);
    figures_.device_at = static_cast<double>(d_[worst]);
  }

  void odd(std::uint64_t at, std::size_t n) {
    const T largest = static_cast<T>(form_.largest);
    for (std::size_t i = 0; i < n; ++i) {
      const T b = b_[i];
      const T d = d_[i];
      if (!finite(rounded_[i]) || !finite(d)) {
        const T cut_b = b > largest ? largest : b < -largest ? -largest : b;
        const T cut_d = d > largest ? largest : d < -largest ? -largest : d;
        const bool near = std::fabs(cut_d - cut_b) / (std::fabs(b) + epsilon_) <=
                          static_cast<T>(request_.relative_tolerance);
        figures_.odd_errors += !(near || (b != b && d != d));
      }
      const bool alike = b == d || d == rounded_[i] || (b != b && d != d);
      if (alike || (finite(b) && finite(d))) continue;
      if (figures_.odd_unequal++ != 0) continue;
      figures_.odd_unequal_at = at + i;
      figures_.odd_reference_at = static_cast<double>(b);
      figures_.odd_device_at = static_cast<double>(d);
    }
  }

  const FloatRequest& request_;
  DeviceForm form_;
  T epsilon_;
  Elements<T> reference_;
  Elements<T> device_;
  FloatFigures figures_;

  std::array<T, kPiece> b_;
  std::array<T, kPiece> d_;
  std::array<T, kPiece> rounded_;
  std::array<T, kPiece> absolute_;
  std::array<T, kPiece> relative_;
  std::array<T, kPiece> scratch_;
  std::array<bool, kPiece> normal_;

  bool nan_reference_ = false;
  bool nan_device_ = false;
  bool all_finite_ = true;
  bool any_nan_ = false;
  bool has_odd_ = false;
  T max_reference_ = 0;
  T max_device_ = 0;
  double scale_reference_ = 1;
  double scale_device_ = 1;
  double sum_bb_ = 0;
  double sum_dd_ = 0;
  double sum_bd_ = 0;
  std::uint64_t counted_ = 0;
  Int least_unit_ = 0;
};

}  // namespace

FloatFigures float_figures(const TensorOutput& reference, const TensorOutput& device,
                           const FloatRequest& request) {
  std::uint64_t count = 1;
  for (const std::uint64_t size : device.shape) count *= size;
  if (tensor::info(device.dtype).kind == tensor::Kind::complex) count *= 2;
  if (count == 0) return {};
  if (real_type(reference.dtype) == DType::float64 || real_type(device.dtype) == DType::float64)
    return std::make_unique<FloatPass<double>>(reference, device, count, request)->run();
  return std::make_unique<FloatPass<float>>(reference, device, count, request)->run();
}

}  // namespace msprobe::precheck
