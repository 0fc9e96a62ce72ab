// SPDX-License-Identifier: Apache-2.0
#include "measuring/measures.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "tensor/dtype.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::Side;
using dump::Statistic;
using dump::ValueClass;
using dump::ValueKind;

/// A statistic as recorded; NaN and infinities count as values, too.
struct Recorded {
  bool present = false;
  double value = 0;
};

Recorded recorded(const dump::RecordedValue& value, const dump::TextPool& pool) {
  if (value.kind == ValueKind::real) return {true, value.real};  // the kind of nearly all values
  if (value.kind == ValueKind::boolean) return {true, value.boolean ? 1.0 : 0.0};
  if (value.kind == ValueKind::missing || value.kind == ValueKind::none) return {};
  const dump::Classified classified = dump::classify(value, pool);
  switch (classified.type) {
    case ValueClass::number:
      return {true, classified.number};
    case ValueClass::nan:
      return {true, NAN};
    case ValueClass::inf:
      return {true, kInfinite};
    case ValueClass::neg_inf:
      return {true, -kInfinite};
    case ValueClass::device:
    case ValueClass::missing:
    case ValueClass::other:
      break;
  }
  return {};
}

/// All four statistics of a side. If a sum is not finite although all elements are, it overflowed in the
/// recorder and counts as missing.
std::array<Recorded, dump::kStatistics> all_recorded(const Side& side, const Item& item) {
  std::array<Recorded, dump::kStatistics> all;
  for (const Statistic which : {dump::kMax, dump::kMin, dump::kMean, dump::kNorm})
    all[which] = recorded(item.statistics[which], side.pool);
  const auto is_finite = [&](Statistic which) {
    return all[which].present && std::isfinite(all[which].value);
  };
  if (is_finite(dump::kMax) && is_finite(dump::kMin)) {
    for (const Statistic sum : {dump::kMean, dump::kNorm}) {
      if (!std::isfinite(all[sum].value)) all[sum] = {};
    }
  }
  return all;
}

/// The distance of two statistics in units of `scale`; nothing if one is unknown.
std::optional<double> distance(const Recorded& target, const Recorded& golden, double scale,
                               double tolerance) {
  if (!target.present || !golden.present) return std::nullopt;
  if (std::isnan(target.value) && std::isnan(golden.value)) return 0;
  if (target.value == golden.value) return 0;
  const double difference = std::abs(target.value - golden.value);
  if (!std::isfinite(difference)) return kInfinite;
  if (difference <= tolerance) return 0;
  return scale > 0 ? (difference - tolerance) / scale : kInfinite;
}

double finite_size(double value) {
  return std::isfinite(value) ? std::abs(value) : 0;
}

}  // namespace

Measure measure(const tensor::Difference& sums) {
  Measure out;
  out.n = sums.count;
  out.known = true;
  out.norm_target = std::sqrt(sums.squares_target);
  out.norm_golden = std::sqrt(sums.squares_golden);
  if (sums.squares_golden > 0) out.gain = sums.dot / sums.squares_golden;
  if (sums.unequal == 0) return out;
  if (sums.nonfinite_mismatch > 0 || sums.infinity_sign_mismatch > 0 || out.norm_golden == 0) {
    out.e = out.b = kInfinite;
    return out;
  }
  out.e = std::sqrt(sums.squares_difference) / out.norm_golden;
  out.b = std::abs(out.norm_target - out.norm_golden) / out.norm_golden;
  if (std::isnan(out.e)) out.e = kInfinite;
  if (std::isnan(out.b)) out.b = kInfinite;
  return out;
}

namespace {

bool is_constant(const std::array<Recorded, dump::kStatistics>& all) {
  return all[dump::kMax].present && all[dump::kMin].present && std::isfinite(all[dump::kMax].value) &&
         all[dump::kMax].value == all[dump::kMin].value;
}

}  // namespace

Measure measure(const Side& target, const Item& item, const Side& golden, const Item& partner,
                const Tolerance& known, double factor) {
  Measure out;
  out.n = elements_of(golden.text(partner.shape));
  std::array<Recorded, dump::kStatistics> ours = all_recorded(target, item);
  for (Recorded& each : ours) each.value /= factor;
  const std::array<Recorded, dump::kStatistics> theirs = all_recorded(golden, partner);
  const Recorded& norm = theirs[dump::kNorm];
  out.norm_golden = norm.present ? finite_size(norm.value) : 0;
  if (ours[dump::kNorm].present) out.norm_target = finite_size(ours[dump::kNorm].value);
  const bool checksums = item.has_checksum && partner.has_checksum;
  bool statistics = false;
  for (const Statistic which : {dump::kMax, dump::kMin, dump::kMean, dump::kNorm}) {
    statistics = statistics || (ours[which].present && theirs[which].present);
    out.partial = out.partial || ours[which].present != theirs[which].present;
  }
  out.known = statistics || checksums;
  if (!out.known || (checksums && target.text(item.checksum) == golden.text(partner.checksum))) return out;
  const double rms = out.norm_golden / std::sqrt(static_cast<double>(std::max<std::uint64_t>(out.n, 1)));
  const double largest = finite_size(theirs[dump::kMax].value);
  const double least = finite_size(theirs[dump::kMin].value);
  const auto of = [&](Statistic which, double scale, double allowed) {
    return distance(ours[which], theirs[which], scale, allowed).value_or(0);
  };
  Tolerance tolerance = known;
  if (is_constant(ours) && is_constant(theirs)) {
    // For a constant tensor, Max and Min say everything. Sums of equal numbers, added one by one in float32,
    // are all rounded in the same direction. Derived: each addition is off by at most u of a partial sum, all
    // n together by n u / 2 of the whole sum, and its root by n u / 4. A mean is allowed the same, which is
    // half of its bound.
    constexpr double kOfAnElement = 0x1p-26;
    tolerance.norm += kOfAnElement * static_cast<double>(out.n);
    tolerance.mean += kOfAnElement * static_cast<double>(out.n);
  }
  const double mean = finite_size(theirs[dump::kMean].value);
  out.b = of(dump::kNorm, out.norm_golden, tolerance.norm * out.norm_golden + tolerance.sum);
  out.e = std::max({out.b,
                    of(dump::kMean, rms > 0 ? rms : std::max(largest, least),
                       tolerance.mean * mean + tolerance.sum + tolerance.mean_sum * rms),
                    of(dump::kMax, std::max(largest, rms), tolerance.extreme * largest),
                    of(dump::kMin, std::max(least, rms), tolerance.extreme * least)});
  // Checksums show that the tensors differ, but not by how much.
  if (checksums && out.e == 0) out.e = out.b = NAN;
  const bool finite = std::isfinite(theirs[dump::kMax].value) && std::isfinite(theirs[dump::kMin].value);
  out.blind = out.e == 0 && !(finite && theirs[dump::kMax].present && theirs[dump::kMin].present) &&
              norm.present && !std::isfinite(norm.value);
  return out;
}

double unit_roundoff(std::string_view dtype) {
  const auto known = tensor::dtype_from_name(dtype);
  return known ? tensor::unit_roundoff(*known) : 0;
}

bool is_integer(std::string_view dtype) {
  const auto known = tensor::dtype_from_name(dtype);
  return known && tensor::info(*known).kind == tensor::DTypeKind::integer;
}

bool same_dtype(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto first = tensor::dtype_from_name(a);
  return first && first == tensor::dtype_from_name(b);
}

namespace {

/// Calls `take` with each size; false if the text is not a list of sizes.
template <typename Take>
bool for_each_size(std::string_view shape, Take&& take) {
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return false;
  const char* at = shape.data() + 1;
  const char* const end = shape.data() + shape.size() - 1;
  while (at < end) {
    // This code runs several times for every tensor, and the library's parser would take five times as long.
    constexpr std::ptrdiff_t kMostDigits = 19;
    const char* const first = at;
    std::uint64_t size = 0;
    for (; at < end && *at >= '0' && *at <= '9'; ++at)
      size = 10 * size + static_cast<std::uint64_t>(*at - '0');
    if (at == first || at - first > kMostDigits) return false;
    take(size);
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return true;
}

}  // namespace

std::vector<std::uint64_t> sizes_of(std::string_view shape) {
  std::vector<std::uint64_t> sizes;
  if (!for_each_size(shape, [&](std::uint64_t size) { sizes.push_back(size); })) sizes.clear();
  return sizes;
}

std::uint64_t elements_of(std::string_view shape) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t product = 1;
  const bool whole = for_each_size(shape, [&](std::uint64_t size) {
    if (__builtin_mul_overflow(product, size, &product)) product = kMost;
  });
  return whole ? product : 1;
}

double number_of(const Side& side, const Item& item, Statistic which) {
  return number_of(item.statistics[which], side.pool);
}

double number_of(const dump::RecordedValue& value, const dump::TextPool& pool) {
  const Recorded found = recorded(value, pool);
  return found.present ? found.value : NAN;
}

}  // namespace msprobe::measuring
