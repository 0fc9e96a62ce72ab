// SPDX-License-Identifier: Apache-2.0
// Measures the distance of two tensors, relative to the golden one (docs/how-it-decides.md, "Measures").
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "dump/side.hpp"
#include "measuring/precision.hpp"
#include "tensor/difference.hpp"

namespace msprobe::measuring {

inline constexpr double kSingleRoundoff = 0x1p-24;  // of float32
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Measure {
  std::uint64_t n = 0;  // number of elements
  double e = 0;         // random error; infinite if only one side is finite, or golden is zero
  double b = 0;         // systematic error: the error of the norm
  double hidden = 0;    // an error up to this size would go unnoticed
  double gain = NAN;    // of the target over golden; NaN if unknown
  double norm_target = 0;
  double norm_golden = 0;
  bool known = false;    // there were values to measure
  bool partial = false;  // one side has a statistic that the other lacks
  // Both sides have statistics of infinities or NaN, which are equal even if other elements differ.
  bool blind = false;
};

/// From sums over the elements of both tensors.
Measure measure(const tensor::Difference& sums);

/// From those of Max, Min, Mean and Norm that both sides have; equal checksums mean an error of 0. A
/// difference within the tolerance counts as zero. `factor`, positive: the target is divided by it first.
Measure measure(const dump::Side& target, const dump::Item& item, const dump::Side& golden,
                const dump::Item& partner, const Tolerance& tolerance = {}, double factor = 1);

/// Half of the distance from 1 to the next number; 0 for integers, booleans and unknown names. Accepts any
/// spelling.
double unit_roundoff(std::string_view dtype);

bool is_integer(std::string_view dtype);

/// Do two spellings (of two frameworks) name the same dtype?
bool same_dtype(std::string_view a, std::string_view b);

/// The sizes in `[2, 3]`; empty if the text is not a list of sizes.
std::vector<std::uint64_t> sizes_of(std::string_view shape);
/// The product of the sizes, saturated; 1 for `[]`.
std::uint64_t elements_of(std::string_view shape);

/// A recorded statistic as a number: booleans count as 0 and 1; NaN if there is no number.
double number_of(const dump::Side& side, const dump::Item& item, dump::Statistic which);
double number_of(const dump::RecordedValue& value, const dump::TextPool& pool);

}  // namespace msprobe::measuring
