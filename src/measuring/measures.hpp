// SPDX-License-Identifier: Apache-2.0
// How far two tensors are apart, relative to the reference (docs/how-it-decides.md, "Measures").
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "dump/side.hpp"
#include "measuring/imports.hpp"
#include "measuring/precision.hpp"
#include "tensor/difference.hpp"

namespace msprobe::measuring {

inline constexpr double kSingleRoundoff = 0x1p-24;  // of float32
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Measure {
  std::uint64_t n = 0;  // elements
  double e = 0;         // random error; infinite where one side alone is not finite, or golden is zero
  double b = 0;         // systematic error: of the norm
  double hidden = 0;    // an error up to this would not be seen
  double gain = NAN;    // of target over golden; NaN where it is not known
  double norm_target = 0;
  double norm_golden = 0;
  bool known = false;    // there was something to measure
  bool partial = false;  // a statistic that one side has is unknown on the other
  // Statistics of infinities or NaN on both sides, which are equal whatever stands beside them.
  bool blind = false;
};

/// From one pass over both tensors.
Measure measure(const tensor::Difference& sums);

/// From those of Max, Min, Mean and Norm that both sides have; checksums that are equal make it exact. What
/// lies within the tolerance is no difference. `factor`, positive: what the target is divided by first.
Measure measure(const dump::Side& target, const dump::Item& item, const dump::Side& golden,
                const dump::Item& partner, const Tolerance& tolerance = {}, double factor = 1);

/// Half of the distance of 1 to the next number; 0 for integers, booleans and what is no dtype. Any spelling.
double unit_roundoff(std::string_view dtype);

bool is_integer(std::string_view dtype);

/// Do two spellings (of two frameworks) name one dtype?
bool same_dtype(std::string_view a, std::string_view b);

/// `[2, 3]`; empty if it is no list of sizes.
std::vector<std::uint64_t> sizes_of(std::string_view shape);
/// Their product, saturated; 1 for `[]`.
std::uint64_t elements_of(std::string_view shape);

/// The number of a recorded statistic: booleans count as 0 and 1; NaN where there is none.
double number_of(const dump::Side& side, const dump::Item& item, dump::Statistic which);
double number_of(const dump::Value& value, const dump::TextPool& pool);

}  // namespace msprobe::measuring
