// SPDX-License-Identifier: Apache-2.0
#include "measuring/precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "measuring/measures.hpp"
#include "pairing/roles.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::Side;
using dump::ValueKind;
using tensor::DType;

// Each number says whether it is derived, measured or chosen, as in `src/diagnosis/limits.hpp`.

constexpr double kFloat32 = 0x1p-24;  // unit roundoffs
constexpr double kBFloat16 = 0x1p-8;
constexpr double kFloat16 = 0x1p-11;

/// The largest relative error of a norm that is summed in float32. Measured with PyTorch 2.13 on a processor,
/// whose lanes add one element after the other, so that errors accumulate: for normal numbers 4e-8 at 10^3
/// elements, 4e-7 at 10^5, 9e-6 at 10^6, 4e-4 at 10^7, 4e-3 at 5 x 10^7; for activations 4e-6 at 7 x 10^4;
/// for gradients, few of which are large, 1.8e-4 at 10^6. Devices add in trees: 1e-7 to 1e-6. All this is
/// well below the bound: a sum of n squares, added one by one, is off by at most n u and its root by half of
/// that, 3e-8 n (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2).
double float32_sum(double elements) {
  constexpr double kLeast = 4e-7;
  constexpr double kOfAnElement = 3e-10;
  return elements <= 1 ? 0 : std::min(1.0, kLeast + kOfAnElement * elements);
}

/// The largest error of a mean, relative to the root mean square. Measured: 1e-9 to 7e-8. The margin is
/// chosen.
constexpr double kFloat32Mean = 2e-7;

bool is_of(double value, double unit_in_last_place_of_one) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  const double scaled = mantissa / unit_in_last_place_of_one;
  return scaled == std::floor(scaled);
}

bool is_float32(double value) {
  return static_cast<double>(static_cast<float>(value)) == value;
}

/// Is the number the nearest one to a decimal of this many digits?
bool has_digits(double value, int digits) {
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, digits - 1);
  double back = 0;
  return error == std::errc() && std::from_chars(text.data(), end, back).ec == std::errc() && back == value;
}

/// A statistic that the dump has as a floating-point number; NaN for anything else.
double real_of(const Item& item, dump::Statistic which) {
  const dump::RecordedValue value = item.statistics[which];
  return value.kind == ValueKind::real ? value.real : std::numeric_limits<double>::quiet_NaN();
}

/// The number of tensors that shows how many digits the recorder printed. Numbers that are short by chance,
/// as in small examples, show nothing. Derived: float32 needs nine digits, so fewer than eight are the result
/// of printing. The number of tensors that suffices is chosen, not measured.
constexpr int kFewestDigitSamples = 16;
constexpr int kMostDigitSamples = 64;
constexpr int kFewestDigits = 4;
constexpr int kMostDigits = 7;

/// For a constant tensor the exact norm is known. Does the recorded norm equal it up to one rounding to
/// float32? Every dump has such tensors: losses, weights of norms.
bool has_exact_constants(const Side& side) {
  constexpr int kEnough = 32;        // chosen, not measured
  constexpr double kRounded = 2e-7;  // one rounding to float32 is 6e-8; the margin is chosen, not measured
  int seen = 0;
  for (const Item& item : side.items) {
    if (!item.is_tensor || seen == kEnough) continue;
    const double value = real_of(item, dump::kMax);
    const double norm = real_of(item, dump::kNorm);
    if (!std::isfinite(value) || !std::isfinite(norm) || value == 0 || real_of(item, dump::kMin) != value)
      continue;
    const double expected =
        std::abs(value) * std::sqrt(static_cast<double>(elements_of(side.text(item.shape))));
    if (std::abs(norm - expected) > kRounded * expected) return false;
    ++seen;
  }
  return true;
}

RecordedSums recorded_sums(const Side& side) {
  RecordedSums sums;
  if (side.header.recorder.starts_with("msprobe ")) {
    sums.in_double = has_exact_constants(side);
    return sums;
  }
  std::uint64_t bfloat16 = 0;
  std::uint64_t float16 = 0;
  std::uint64_t integers = 0;
  bool all_bfloat16 = true;
  bool all_float16 = true;
  bool all_integers_float32 = true;
  int seen = 0;
  int digits = 1;
  std::uint32_t name = 0;  // of the dtype, which is mostly the same as the previous tensor's
  std::optional<DType> dtype;
  for (const Item& item : side.items) {
    if (!item.is_tensor) continue;
    const double mean = real_of(item, dump::kMean);
    const double norm = real_of(item, dump::kNorm);
    if (std::exchange(name, item.dtype) != item.dtype) dtype = tensor::dtype_from_name(side.text(name));
    if (!dtype || side.text(item.shape) == "[]") continue;
    if (std::isfinite(norm) && norm != 0 && seen < kMostDigitSamples) {
      ++seen;
      for (const dump::Statistic which : {dump::kMax, dump::kMean, dump::kNorm}) {
        const double value = real_of(item, which);
        while (std::isfinite(value) && digits <= kMostDigits && !has_digits(value, digits)) ++digits;
      }
    }
    if (*dtype == DType::bfloat16 && std::isfinite(mean) && std::isfinite(norm)) {
      ++bfloat16;
      all_bfloat16 = all_bfloat16 && is_of(mean, kBFloat16) && is_of(norm, kBFloat16);
    } else if (*dtype == DType::float16 && std::isfinite(mean) && std::isfinite(norm)) {
      ++float16;
      all_float16 = all_float16 && is_of(norm, kFloat16);
    } else if (tensor::info(*dtype).kind == tensor::DTypeKind::integer && !std::isfinite(norm)) {
      sums.integers_without_sums = true;
    } else if (tensor::info(*dtype).kind == tensor::DTypeKind::integer) {
      ++integers;
      all_integers_float32 = all_integers_float32 && is_float32(norm) && is_float32(mean) &&
                             item.statistics[dump::kMax].kind == ValueKind::real;
    }
  }
  // A few sums may be short numbers by chance. Derived: a float32 number has as few bits as bfloat16 once in
  // 2^16, as few as float16 once in 2^13, sums of small integers more often. Eight is chosen, not measured.
  constexpr std::uint64_t kFewestHalf = 8;
  sums.half_as_bfloat16 = bfloat16 >= kFewestHalf && all_bfloat16;
  sums.half_as_float16 = float16 >= kFewestHalf && all_float16;
  sums.integers_in_float32 = integers > 0 && all_integers_float32;
  sums.digits = seen >= kFewestDigitSamples && digits >= kFewestDigits && digits <= kMostDigits ? digits : 0;
  // The Python tool writes either no norm for integers, or a float32 one.
  sums.in_double = integers > 0 && !all_integers_float32 && has_exact_constants(side);
  return sums;
}

}  // namespace

StatisticsPrecision::StatisticsPrecision(const Side& target, const Side& golden)
    : target_(recorded_sums(target)), golden_(recorded_sums(golden)) {
  const auto is_exact = [](const RecordedSums& sums) { return sums.in_double && sums.digits == 0; };
  exact_ = is_exact(target_) && is_exact(golden_);
}

StatisticsPrecision::StatisticsPrecision(const Side& target, const Side& golden,
                                         const std::vector<std::uint32_t>& golden_item)
    : StatisticsPrecision(target, golden) {
  if (exact_) return;
  Samples samples;
  pairing::for_each_parameter(target, golden_item, [&](std::uint32_t item, std::uint32_t partner) {
    add(samples, target, target.items[item], golden, golden.items[partner]);
  });
  learn(samples);
}

std::size_t StatisticsPrecision::type_of(KnownType dtype) {
  if (dtype == DType::bfloat16) return 0;
  return dtype == DType::float16 ? 1 : 2;
}

std::size_t StatisticsPrecision::decade_of(std::uint64_t elements) {
  std::size_t decade = 0;
  for (; elements >= 10 && decade + 1 < kDecades; elements /= 10) ++decade;
  return decade;
}

/// Adds two records of a tensor that is equal on both sides, as Max and Min show: differences of Mean and
/// Norm then come from the recorders.
void StatisticsPrecision::add(Samples& samples, const Side& target, const Item& item, const Side& golden,
                              const Item& partner) {
  const auto same = [&](dump::Statistic which) {
    const double ours = number_of(target, item, which);
    return std::isfinite(ours) && ours == number_of(golden, partner, which);
  };
  const KnownType dtype = tensor::dtype_from_name(golden.text(partner.dtype));
  const std::uint64_t elements = elements_of(golden.text(partner.shape));
  if (!same(dump::kMax) || !same(dump::kMin) || !dtype || tensor::unit_roundoff(*dtype) == 0 || elements < 2)
    return;
  // The sums of a constant tensor are too easy to show a recorder's error.
  if (number_of(golden, partner, dump::kMax) == number_of(golden, partner, dump::kMin)) return;
  const double norm = number_of(golden, partner, dump::kNorm);
  const double rms = norm / std::sqrt(static_cast<double>(elements));
  const double of_norm = std::abs(number_of(target, item, dump::kNorm) - norm) / norm;
  const double of_mean =
      std::abs(number_of(target, item, dump::kMean) - number_of(golden, partner, dump::kMean)) / rms;
  if (!std::isfinite(of_norm) || !std::isfinite(of_mean)) return;
  samples[type_of(dtype)][decade_of(elements)].push_back(
      {static_cast<float>(of_norm), static_cast<float>(of_mean)});
}

void StatisticsPrecision::learn(const Samples& samples) {
  constexpr std::size_t kFewest = 5;  // chosen, not measured
  // The limit is four times the value that three of four tensors do not exceed: few tensors with equal Max
  // and Min really differ inside. Chosen, not measured.
  constexpr double kMargin = 4;
  for (std::size_t type = 0; type < kTypes; ++type) {
    for (std::size_t decade = 0; decade < kDecades; ++decade) {
      std::vector<Sample> near;
      for (std::size_t width = 0; near.size() < kFewest && width < kDecades; ++width) {
        near.clear();
        for (std::size_t i = 0; i < kDecades; ++i) {
          const std::size_t distance = i > decade ? i - decade : decade - i;
          const std::vector<Sample>& these = samples[type][i];
          if (distance <= width) near.insert(near.end(), these.begin(), these.end());
        }
      }
      if (near.size() < kFewest) continue;
      const auto most = [&](float Sample::*which) {
        const auto at = near.begin() + static_cast<std::ptrdiff_t>(near.size() * 3 / 4);
        std::nth_element(near.begin(), at, near.end(),
                         [which](const Sample& a, const Sample& b) { return a.*which < b.*which; });
        return kMargin * static_cast<double>((*at).*which);
      };
      Learnt& learnt = learnt_[type][decade];
      learnt = {most(&Sample::norm), most(&Sample::mean), true, false};
      learnt.alike = std::all_of(near.begin(), near.end(),
                                 [](const Sample& each) { return each.norm == 0 && each.mean == 0; });
    }
  }
  lend();
}

/// Types with too few samples get the limits of another type: a recorder whose sums are inexact for one type
/// is inexact for others, too. Types that were rounded to half precision lend nothing, since rounding hides
/// the error.
void StatisticsPrecision::lend() {
  const std::array<bool, kTypes> rounded = {target_.half_as_bfloat16 || golden_.half_as_bfloat16,
                                            target_.half_as_float16 || golden_.half_as_float16, false};
  for (std::size_t type = 0; type < kTypes; ++type) {
    for (std::size_t decade = 0; decade < kDecades; ++decade) {
      if (learnt_[type][decade].known) continue;
      for (std::size_t other = 0; other < kTypes; ++other) {
        const Learnt& learnt = learnt_[other][decade];
        if (!rounded[other] && learnt.known && !learnt.alike) learnt_[type][decade] = learnt;
      }
    }
  }
}

Tolerance StatisticsPrecision::of(const Side& target, const Item& item, const Side& golden,
                                  const Item& partner) const {
  if (exact_) return {};
  const KnownType target_dtype = tensor::dtype_from_name(target.text(item.dtype));
  const KnownType golden_dtype = tensor::dtype_from_name(golden.text(partner.dtype));
  const std::uint64_t elements = elements_of(golden.text(partner.shape));
  const double n = static_cast<double>(elements);
  const std::size_t type = type_of(golden_dtype);
  const Learnt& learnt = learnt_[type][decade_of(elements)];
  const auto of_side = [n](const RecordedSums& sums, KnownType known) {
    Tolerance side;
    if (sums.digits > 0) side.extreme = side.norm = side.mean = 0.5 * std::pow(10.0, 1 - sums.digits);
    const bool integer = known && tensor::info(*known).kind == tensor::DTypeKind::integer;
    if (sums.integers_in_float32 && known && (integer || *known == DType::float64))
      side.extreme = std::max(side.extreme, kFloat32);
    if (sums.in_double || n <= 1) return side;
    const double rounded = known == DType::bfloat16 && sums.half_as_bfloat16 ? kBFloat16
                           : known == DType::float16 && sums.half_as_float16 ? kFloat16
                                                                             : kFloat32;
    side.norm += rounded + float32_sum(n);
    side.mean += rounded;
    side.mean_sum = kFloat32Mean;
    // Below its normal numbers, float16 has steps of 2^-24.
    if (rounded == kFloat16) side.sum = 0x1p-25;
    return side;
  };
  const Tolerance ours = of_side(target_, target_dtype);
  const Tolerance theirs = of_side(golden_, golden_dtype);
  Tolerance both{ours.extreme + theirs.extreme, ours.norm + theirs.norm, ours.mean + theirs.mean,
                 ours.sum + theirs.sum, ours.mean_sum + theirs.mean_sum};
  if (!learnt.known) return both;
  if (learnt.alike && !target_.in_double && !golden_.in_double) {
    // If equal tensors have equal sums, both recorders sum in the same way, and nearly equal tensors have
    // nearly equal sums. The factor is chosen, not measured.
    constexpr double kAlike = 16;
    both.norm -= (1 - 1 / kAlike) * 2 * float32_sum(n);
    return both;
  }
  // A larger difference between equal tensors does not come from summation. Chosen, not measured.
  constexpr double kMostLearnt = 1e-5;
  const double most = std::max(kMostLearnt, 4 * both.norm);
  both.norm = std::max(both.norm, std::min(learnt.norm, most));
  both.mean_sum = std::max(both.mean_sum, std::min(learnt.mean, most));
  return both;
}

std::vector<std::string> StatisticsPrecision::limits() const {
  std::vector<std::string> out;
  const auto of = [&](const RecordedSums& sums, const char* whose) {
    if (sums.half_as_bfloat16 || sums.half_as_float16) {
      const char* const type = sums.half_as_bfloat16 ? "bfloat16" : "float16";
      const char* const part = sums.half_as_bfloat16 ? "0.4 %" : "0.05 %";
      const bool integers = sums.integers_without_sums;
      out.push_back(
          fmt::format("mean and norm of {} are rounded to {}{}: errors below {} of them{} go undetected; "
                      "record with msprobe's collector, or with task tensor",
                      whose, type, integers ? ", and integers have no mean and norm" : "", part,
                      integers ? ", and different integers with the same maximum and minimum," : ""));
    }
    if (sums.digits > 0) {
      out.push_back(
          fmt::format("the statistics of {} were printed with {} digits: smaller differences go "
                      "undetected",
                      whose, sums.digits));
    }
  };
  const bool alike = target_.integers_without_sums == golden_.integers_without_sums &&
                     target_.half_as_bfloat16 == golden_.half_as_bfloat16 &&
                     target_.half_as_float16 == golden_.half_as_float16 && target_.digits == golden_.digits;
  if (alike) {
    of(golden_, "both sides");
  } else {
    of(target_, "this run");
    of(golden_, "golden");
  }
  return out;
}

}  // namespace msprobe::measuring
