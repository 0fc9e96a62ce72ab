// SPDX-License-Identifier: Apache-2.0
#include "pairing/joins.hpp"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <map>
#include <system_error>

namespace msprobe::pairing {

using dump::kMax;
using dump::kMean;
using dump::kMin;
using dump::kNorm;
using dump::kStatistics;
using dump::ValueKind;

const Item* item_of_entry(const Side& side, const dump::Api& api, std::string_view name,
                          std::uint32_t place) {
  const auto is_it = [&](std::uint32_t i) { return side.name(side.items[api.first + i]) == name; };
  if (place < api.count && is_it(place)) return &side.items[api.first + place];
  // Entries that differ between ranks are few, and short.
  constexpr std::uint32_t kMostLooked = 256;
  for (std::uint32_t i = 0; i < std::min(api.count, kMostLooked); ++i) {
    if (is_it(i)) return &side.items[api.first + i];
  }
  return nullptr;
}

void Joins::add_part(std::uint32_t rank, const Side& side, const Item& item) {
  RankPart& part = parts_.emplace_back();
  part.rank = rank;
  part.dtype = pool.intern(side.text(item.dtype));
  part.shape = pool.intern(side.text(item.shape));
  if (item.data_name != 0) part.data_name = pool.add(side.text(item.data_name));
  part.placement = side.placement(item);
  for (std::size_t which = 0; which < kStatistics; ++which) {
    const RecordedValue value = item.statistics[which];
    const bool text = value.kind == ValueKind::text;
    part.statistics.set(which, text ? RecordedValue::of_text(pool.intern(side.text(value.text))) : value);
  }
}

void Joins::end_item() {
  ends_.push_back(static_cast<std::uint32_t>(parts_.size()));
  decisions_.emplace_back();
}

std::span<const RankPart> Joins::parts(std::size_t item) const {
  if (item >= ends_.size()) return {};  // made later, to represent other items
  const std::size_t begin = item == 0 ? 0 : ends_[item - 1];
  return std::span(parts_).subspan(begin, ends_[item] - begin);
}

std::vector<std::int64_t> Joins::numbers(std::size_t item) const {
  std::vector<std::int64_t> numbers;
  for (const RankPart& part : parts(item)) numbers.push_back(ranks[part.rank].number);
  return numbers;
}

std::optional<Precision> precision_of(std::string_view dtype) {
  constexpr Precision kHalf = {11, -13, 65504};
  constexpr Precision kSingle = {FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX};
  constexpr Precision kBrain = {8, FLT_MIN_EXP, 0x1.FEp127};
  static const std::map<std::string_view, Precision> kKnown = {
      {"torch.int8", {}},         {"torch.int32", {}},  {"torch.int64", {}},      {"torch.float64", {}},
      {"torch.bfloat16", kBrain}, {"BFloat16", kBrain}, {"torch.float16", kHalf}, {"Float16", kHalf},
      {"torch.float32", kSingle}, {"Float32", kSingle}};
  const auto found = kKnown.find(dtype);
  return found == kKnown.end() ? std::nullopt : std::optional(found->second);
}

double rounded(double value, const Precision& precision) {
  if (precision.digits == 0 || !std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int shift = std::max(exponent, precision.least_exponent) - precision.digits;
  const double near = std::ldexp(std::nearbyint(std::ldexp(value, -shift)), shift);
  return std::fabs(near) > precision.largest ? std::copysign(HUGE_VAL, value) : near;
}

std::optional<double> number_in(const RecordedValue& value) {
  if (value.kind == ValueKind::real) return value.real;
  if (value.kind == ValueKind::integer) return static_cast<double>(value.integer);
  return std::nullopt;
}

namespace {

/// Whether two numbers are near: relatively, or absolutely if one is zero.
bool near(double main, double other) {
  constexpr double kTolerance = 1e-6;
  if (std::isnan(main) && std::isnan(other)) return true;
  if (main == other) return true;
  const double difference = std::fabs(main - other);
  return main == 0 ? difference < kTolerance : difference / std::fabs(main) < kTolerance;
}

}  // namespace

bool same_statistics(const dump::StatisticValues& a, const dump::StatisticValues& b) {
  for (std::size_t which = 0; which < kStatistics; ++which) {
    const std::optional<double> main = number_in(a[which]);
    const std::optional<double> other = number_in(b[which]);
    if (!main || !other) continue;
    const bool exact = which == kMax || which == kMin;
    if (exact ? *main != *other : !near(*main, *other)) return false;
  }
  return true;
}

std::optional<RecordedValue> join_statistic(std::size_t which, std::span<const RecordedValue> values,
                                            std::span<const double> weights, Share share) {
  RecordedValue result = values.front();
  double sum = 0;
  double elements = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<double> number = number_in(values[i]);
    if (!number) return std::nullopt;
    if (which == kMax && *number > *number_in(result)) result = values[i];
    if (which == kMin && *number < *number_in(result)) result = values[i];
    const double weight = weights.empty() ? 1 : weights[i];
    sum += which == kNorm ? *number * *number : share == Share::sums ? *number : *number * weight;
    elements += weight;
  }
  if (share == Share::copies) return values.front();
  if (which == kMean) return RecordedValue::of(share == Share::sums ? sum : sum / elements);
  if (share == Share::sums) return RecordedValue::missing();
  return which == kNorm ? RecordedValue::of(std::sqrt(sum)) : result;
}

std::optional<std::vector<std::int64_t>> axes_of(std::string_view shape) {
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return std::nullopt;
  std::vector<std::int64_t> axes;
  const char* at = shape.data() + 1;
  const char* const end = shape.data() + shape.size() - 1;
  constexpr std::size_t kMostAxes = 64;
  while (at < end && axes.size() < kMostAxes) {
    const auto [next, error] = std::from_chars(at, end, axes.emplace_back());
    if (error != std::errc() || axes.back() < 0) return std::nullopt;
    at = next;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return at < end ? std::nullopt : std::optional(std::move(axes));
}

std::vector<double> weights_of(const Joins& joins, std::span<const RankPart> parts) {
  const auto same = [&](const RankPart& part) { return part.shape == parts.front().shape; };
  std::vector<double> weights;
  if (std::ranges::all_of(parts, same)) return weights;
  for (const RankPart& part : parts) {
    double elements = 1;
    const auto axes = axes_of(joins.pool.at(part.shape));
    if (!axes) return {};
    for (const std::int64_t size : *axes) elements *= static_cast<double>(size);
    weights.push_back(elements);
  }
  return weights;
}

}  // namespace msprobe::pairing
