// SPDX-License-Identifier: Apache-2.0
#include "precheck/judgement/float_figures.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>

#include "precheck/judgement/kernels.hpp"
#include "precheck/judgement/pairwise_sum.hpp"
#include "support/interrupt.hpp"
#include "tensor/accumulate.hpp"
#include "tensor/convert.hpp"
#include "tensor/float_form.hpp"
#include "tensor/isa.hpp"
#include "tensor/kernels.hpp"

namespace msprobe::precheck {
namespace {

using tensor::DType;

constexpr std::size_t kPiece = 256;  // what is made of them stays in the first-level cache, double or not
constexpr double kBfloat16Largest = 3.3895313892515355e38;

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

/// The range and the rounding of the type that the device computed in.
struct DeviceForm {
  bool rounds_half = false;    // to float16
  bool rounds_single = false;  // to float, from double
  double largest = 0;          // finite value, as the Python tool has it
  double overflow =
      std::numeric_limits<double>::infinity();  // from this size on, a number rounds to infinity
  int fraction = 0;
  int least = 0;  // exponent
};

/// The properties of a type. `T`: the type in which elements are read.
template <typename T>
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
  constexpr bool kDouble = std::is_same_v<T, double>;
  if (form.rounds_half) {
    form.overflow = kDouble ? 65520.0 - 0x1p-9 : 65520.0;  // a double becomes a float first
  } else if (kDouble && form.rounds_single) {
    form.overflow = 0x1.ffffffp127;
  }
  return form;
}

/// Elements of one side, a piece at a time.
template <typename T>
class SideElements {
 public:
  SideElements(const TensorOutput& tensor, std::uint64_t count, const JudgeKernels& kernels)
      : tensor_(tensor),
        kernels_(kernels),
        dtype_(tensor::real_type(tensor.dtype)),
        size_(tensor.bytes.size() / count) {
    constexpr DType kOwn = std::is_same_v<T, float> ? DType::float32 : DType::float64;
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes.data());
    if (dtype_ == kOwn && address % alignof(T) == 0) own_ = reinterpret_cast<const T*>(tensor.bytes.data());
    if (dtype_ == DType::float32 && address % alignof(float) == 0)
      single_ = reinterpret_cast<const float*>(tensor.bytes.data());
  }

  /// Returns the elements: in `place`, or where they already are if their memory has the wanted form.
  const T* read(std::uint64_t at, std::span<T> place) const {
    if (own_ != nullptr) return own_ + at;
    const auto raw = tensor_.bytes.subspan(static_cast<std::size_t>(at) * size_, place.size() * size_);
    if constexpr (std::is_same_v<T, float>) {
      tensor::to_float(dtype_, raw, place);
    } else if (single_ != nullptr) {
      kernels_.widen(single_ + at, place.size(), place.data());
    } else {
      tensor::to_double(dtype_, raw, place);
    }
    return place.data();
  }

 private:
  const TensorOutput& tensor_;
  const JudgeKernels& kernels_;
  DType dtype_;
  std::size_t size_;
  const T* own_ = nullptr;
  const float* single_ = nullptr;
};

const JudgeKernels& judge_kernels(tensor::Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case tensor::Isa::sse2:
      return judge_sse2::kKernels;
    case tensor::Isa::avx2:
      return judge_avx2::kKernels;
    case tensor::Isa::avx512:
      return judge_avx512::kKernels;
#elif defined(__aarch64__)
    case tensor::Isa::neon:
      return judge_neon::kKernels;
#endif
    default:
      return judge_scalar::kKernels;
  }
}

template <typename T>
const PieceKernels<T>& piece_kernels(const JudgeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.float32;
  } else {
    return kernels.float64;
  }
}

/// Computes the figures in two passes, since the second one needs figures of the whole tensor.
template <typename T>
class FloatPass {
 public:
  FloatPass(const TensorOutput& reference, const TensorOutput& device, std::uint64_t count,
            const FloatRequest& request, tensor::Isa isa)
      : request_(request),
        kernels_(judge_kernels(isa)),
        pieces_(piece_kernels<T>(kernels_)),
        sums_(tensor::typed_kernels<T>(tensor::kernels_for(isa))),
        form_(form_of<T>(tensor::real_type(device.dtype))),
        range_{static_cast<T>(request.small_value), static_cast<T>(form_.overflow)},
        epsilon_(device.dtype == DType::bfloat16 ? T{0x1p-8} : std::numeric_limits<T>::epsilon()),
        reference_(reference, count, kernels_),
        device_(device, count, kernels_),
        wide_ulp_(std::is_same_v<T, float> && device.dtype == DType::float32) {
    figures_.single = std::is_same_v<T, float>;
    figures_.count = count;
  }

  FloatFigures run() {
    each_piece([&](std::uint64_t, std::size_t n) { look(n); });
    finish_look();
    PairwiseSum<T> relatives(normal_, pieces_.leaf_sum);
    PairwiseSum<T> squares(request_.means ? figures_.count : 0, pieces_.leaf_sum);
    const std::uint64_t ulp_count = request_.ulp ? figures_.count : 0;
    PairwiseSum<T> ulps(wide_ulp_ ? 0 : ulp_count, pieces_.leaf_sum);
    PairwiseSum<double> wide_ulps(wide_ulp_ ? ulp_count : 0, kernels_.float64.leaf_sum);
    each_piece([&](std::uint64_t at, std::size_t n) {
      round(n);
      errors(at, n);
      if (request_.means) means(n, relatives, squares);
      if (request_.ulp) wide_ulp_ ? wide_ulp(n, wide_ulps) : ulp(n, ulps);
      if (has_nonfinite_) nonfinite(at, n);
    });
    finish();
    if (normal_ != 0)
      figures_.mean_relative = static_cast<double>(relatives.total() / static_cast<T>(normal_));
    figures_.mean_square = static_cast<double>(squares.total() / static_cast<T>(figures_.count));
    figures_.mean_ulp = wide_ulp_ ? wide_ulps.total() / static_cast<double>(figures_.count)
                                  : static_cast<double>(ulps.total() / static_cast<T>(figures_.count));
    figures_.max_ulp = std::isnan(figures_.mean_ulp) ? figures_.mean_ulp
                       : wide_ulp_                   ? wide_ulps_.max
                                                     : static_cast<double>(ulps_.max);
    figures_.ulp_above = wide_ulp_ ? wide_ulps_.above : ulps_.above;
    figures_.ulp_single = figures_.single && !wide_ulp_;
    return figures_;
  }

 private:
  using Int = typename Bits<T>::Int;

  template <typename Body>
  void each_piece(const Body& body) {
    for (std::uint64_t at = 0; at < figures_.count; at += kPiece) {
      if (at % (std::uint64_t{1} << 24) == 0) check_interrupt();
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, figures_.count - at));
      b_ = reference_.read(at, std::span(b_place_).first(n));
      d_ = device_.read(at, std::span(d_place_).first(n));
      body(at, n);
    }
  }

  /// Rounds the references to the device's type.
  void round(std::size_t n) {
    rounded_ = b_;
    if (form_.rounds_half) {
      for (std::size_t i = 0; i < n; ++i)
        rounded_place_[i] = static_cast<T>(nearest_half(static_cast<float>(b_[i])));
      rounded_ = rounded_place_.data();
    }
    if constexpr (std::is_same_v<T, double>) {
      if (form_.rounds_half || !form_.rounds_single) return;
      kernels_.round_to_float(b_, n, rounded_place_.data());
      rounded_ = rounded_place_.data();
    }
  }

  static bool finite(T x) { return std::fabs(x) <= std::numeric_limits<T>::max(); }

  /// Finds the maxima, counts elements that are not finite, and adds up the sums of the cosine.
  void look(std::size_t n) {
    const std::uint64_t nonfinite_before = look_.nonfinite;
    pieces_.look(b_, d_, n, &range_, &look_);
    const T* b = b_;
    const T* d = d_;
    if (look_.nonfinite != nonfinite_before) {
      all_finite_ = false;
      for (std::size_t i = 0; i < n; ++i) {
        const bool both = finite(b_[i]) && finite(d_[i]);
        absolute_[i] = both ? b_[i] : T{0};
        relative_[i] = both ? d_[i] : T{0};
        left_out_ += !both;
      }
      b = absolute_.data();
      d = relative_.data();
    }
    sums_.pair_sums(d, b, n, d, b, &pairs_);
  }

  /// Adds up the sums again with both sides scaled to maxima near 1, because squares would overflow or
  /// vanish.
  void look_scaled() {
    pairs_ = {};
    const auto scale_of = [](double max) {
      return max == 0 ? 1.0 : std::ldexp(1.0, std::clamp(-std::ilogb(max), -1000, 1000));
    };
    scale_reference_ = scale_of(figures_.max_reference);
    const double scale_device = scale_of(figures_.max_device);
    each_piece([&](std::uint64_t, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) {
        absolute_[i] = static_cast<T>(static_cast<double>(b_[i]) * scale_reference_);
        relative_[i] = static_cast<T>(static_cast<double>(d_[i]) * scale_device);
      }
      sums_.pair_sums(relative_.data(), absolute_.data(), n, relative_.data(), absolute_.data(), &pairs_);
    });
  }

  void finish_look() {
    const auto largest_of = [](T max, std::uint64_t nan) {
      return nan != 0 ? std::nan("") : static_cast<double>(max);
    };
    figures_.max_reference = largest_of(look_.max_reference, look_.nan_reference);
    figures_.max_device = largest_of(look_.max_device, look_.nan_device);
    figures_.zeros = look_.zeros;
    // The sum of a mean needs the number of its terms first.
    if (request_.means) normal_ = look_.normal;
    constexpr double kLargestSquare = 1e140;
    constexpr double kSmallestSquare = 1e-140;
    const auto is_strange = [](double max) {
      return max != 0 && (max > kLargestSquare || max < kSmallestSquare);
    };
    if (all_finite_ && (is_strange(figures_.max_reference) || is_strange(figures_.max_device))) look_scaled();
    // This includes references that overflow in the device's type.
    has_nonfinite_ = !all_finite_ || figures_.max_reference > form_.largest;
    const double squares_reference = tensor::sum_lanes(pairs_.golden.squares);
    const double squares_device = tensor::sum_lanes(pairs_.target.squares);
    figures_.cosine = all_finite_ ? tensor::sum_lanes(pairs_.dot) /
                                        (std::sqrt(squares_reference) * std::sqrt(squares_device))
                                  : std::nan("");
    const std::uint64_t counted = figures_.count - left_out_;
    const double root =
        counted == 0 ? 0 : std::sqrt(squares_reference / static_cast<double>(counted)) / scale_reference_;
    int exponent = form_.least;
    if (root > 0 && std::isfinite(root)) exponent = std::max(exponent, std::ilogb(root));
    // The reciprocal of the unit must be a finite number.
    scale_.least = std::max(exponent, form_.fraction - static_cast<int>(Bits<T>::kBias));
    scale_.fraction = form_.fraction;
    scale_.epsilon = epsilon_;
    scale_.least_told = static_cast<T>(std::ldexp(1.0, form_.least + 1));
  }

  void errors(std::uint64_t at, std::size_t n) {
    const T worst_before = facts_.max_units;
    pieces_.errors(b_, rounded_, d_, n, &scale_, absolute_.data(), relative_.data(), &facts_);
    if (facts_.max_units > worst_before) find_worst(at, n);
    if (!request_.sorts) return;
    const PieceLimits<T> limits = {static_cast<T>(request_.small_value),
                                   static_cast<T>(request_.small_tolerance),
                                   static_cast<T>(request_.relative_tolerance)};
    const std::uint64_t normal_before = sorts_.normal;
    pieces_.sorts(b_, rounded_, d_, absolute_.data(), relative_.data(), n, &limits, scratch_.data(), &sorts_);
    piece_is_normal_ = sorts_.normal - normal_before == n;
  }

  /// Finds the element of this piece with the largest error.
  void find_worst(std::uint64_t at, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      if (!finite(b_[i]) || !finite(d_[i]) || d_[i] == rounded_[i]) continue;
      const Int exponent = std::max(exponent_of(b_[i]), static_cast<Int>(scale_.least));
      if (absolute_[i] * power_of_two<T>(static_cast<Int>(scale_.fraction) - exponent) != facts_.max_units)
        continue;
      figures_.max_units_at = at + i;
      figures_.max_units_error = static_cast<double>(absolute_[i]);
      figures_.reference_at = static_cast<double>(b_[i]);
      figures_.device_at = static_cast<double>(d_[i]);
      return;
    }
  }

  /// Adds to the sums of the means. `scratch_` holds the squares.
  void means(std::size_t n, PairwiseSum<T>& relatives, PairwiseSum<T>& squares) {
    if (piece_is_normal_) {
      relatives.add(relative_.data(), n);
    } else {
      relatives.add(kept_.data(), pieces_.keep_normal(b_, d_, relative_.data(), n, &range_, kept_.data()));
    }
    squares.add(scratch_.data(), n);
  }

  void finish() {
    figures_.max_absolute = facts_.nan != 0 ? std::nan("") : static_cast<double>(facts_.max_absolute);
    figures_.within_hundredth = facts_.within_hundredth;
    figures_.within_thousandth = facts_.within_thousandth;
    figures_.within_ten_thousandth = facts_.within_ten_thousandth;
    figures_.unequal = facts_.unequal;
    figures_.max_units = static_cast<double>(facts_.max_units);
    figures_.wrong = facts_.wrong;
    figures_.above = sorts_.above;
    figures_.below = sorts_.below;
    figures_.small = sorts_.small;
    figures_.normal = sorts_.normal;
    figures_.nonfinite = request_.sorts ? figures_.count - sorts_.small - sorts_.normal : 0;
    figures_.small_errors = sorts_.small_errors;
    figures_.relative_errors = sorts_.relative_errors;
    figures_.max_relative = static_cast<double>(sorts_.max_relative);
  }

  void ulp(std::size_t n, PairwiseSum<T>& sum) {
    const UlpScale<T> scale = {static_cast<T>(request_.ulp_threshold), form_.fraction, form_.least};
    pieces_.ulp(b_, absolute_.data(), n, &scale, scratch_.data(), &ulps_);
    sum.add(scratch_.data(), n);
  }

  /// Computes the errors in double: the Python tool widens float32, but no narrower type.
  void wide_ulp(std::size_t n, PairwiseSum<double>& sum) {
    const UlpScale<double> scale = {request_.ulp_threshold, form_.fraction, form_.least};
    std::copy_n(b_, n, wide_b_.begin());
    std::copy_n(absolute_.begin(), n, wide_absolute_.begin());
    kernels_.float64.ulp(wide_b_.data(), wide_absolute_.data(), n, &scale, wide_b_.data(), &wide_ulps_);
    sum.add(wide_b_.data(), n);
  }

  /// Rounds a difference of cut-off numbers, which may be beyond the device's type, to that type.
  T in_type(T difference) const {
    if (form_.rounds_half) return static_cast<T>(nearest_half(static_cast<float>(difference)));
    return form_.rounds_single ? static_cast<T>(static_cast<float>(difference)) : difference;
  }

  void nonfinite(std::uint64_t at, std::size_t n) {
    const T largest = static_cast<T>(form_.largest);
    for (std::size_t i = 0; i < n; ++i) {
      const T b = b_[i];
      const T d = d_[i];
      const bool both_nan = std::isnan(b) && std::isnan(d);
      if (!finite(rounded_[i]) || !finite(d)) {
        const T r = rounded_[i];
        const T cut_b = r > largest ? largest : r < -largest ? -largest : r;
        const T cut_d = d > largest ? largest : d < -largest ? -largest : d;
        const bool near = std::fabs(in_type(cut_d - cut_b)) / (std::fabs(b) + epsilon_) <=
                          static_cast<T>(request_.relative_tolerance);
        figures_.nonfinite_errors += !(near || both_nan);
      }
      const bool alike = b == d || d == rounded_[i] || both_nan;
      if (alike || (finite(b) && finite(d))) continue;
      if (figures_.nonfinite_unequal++ != 0) continue;
      figures_.nonfinite_unequal_at = at + i;
      figures_.nonfinite_reference_at = static_cast<double>(b);
      figures_.nonfinite_device_at = static_cast<double>(d);
    }
  }

  const FloatRequest& request_;
  const JudgeKernels& kernels_;
  const PieceKernels<T>& pieces_;
  const tensor::TypedKernels<T>& sums_;
  DeviceForm form_;
  PieceRange<T> range_;
  T epsilon_;
  SideElements<T> reference_;
  SideElements<T> device_;
  FloatFigures figures_;

  const T* b_ = nullptr;  // elements of the piece
  const T* d_ = nullptr;
  std::array<T, kPiece> b_place_;
  std::array<T, kPiece> d_place_;
  std::array<T, kPiece> rounded_place_;
  const T* rounded_ = nullptr;
  std::array<T, kPiece> absolute_;
  std::array<T, kPiece> relative_;
  std::array<T, kPiece> scratch_;
  std::array<T, kPiece> kept_;

  PieceLook<T> look_ = {};
  tensor::PairState pairs_ = {};
  PieceScale<T> scale_ = {};
  PieceFacts<T> facts_ = {};
  PieceSorts<T> sorts_ = {};
  bool piece_is_normal_ = false;
  UlpFacts<T> ulps_ = {};
  bool wide_ulp_;
  UlpFacts<double> wide_ulps_ = {};
  std::array<double, kPiece> wide_b_;
  std::array<double, kPiece> wide_absolute_;
  bool all_finite_ = true;
  bool has_nonfinite_ = false;
  std::uint64_t left_out_ = 0;  // of the sums
  std::uint64_t normal_ = 0;
  double scale_reference_ = 1;
};

}  // namespace

FloatFigures float_figures(const TensorOutput& reference, const TensorOutput& device,
                           const FloatRequest& request, tensor::Isa isa) {
  std::uint64_t count = 1;
  for (const std::uint64_t size : device.shape) count *= size;
  if (tensor::info(device.dtype).kind == tensor::DTypeKind::complex) count *= 2;
  if (count == 0) return {};
  if (tensor::real_type(reference.dtype) == DType::float64 ||
      tensor::real_type(device.dtype) == DType::float64)
    return std::make_unique<FloatPass<double>>(reference, device, count, request, isa)->run();
  return std::make_unique<FloatPass<float>>(reference, device, count, request, isa)->run();
}

}  // namespace msprobe::precheck
