// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/amplification.hpp"

#include <algorithm>
#include <cmath>

#include "diagnosis/limits.hpp"
#include "diagnosis/run_outputs.hpp"
#include "measuring/measures.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {

using dump::Item;
using dump::Nature;
using dump::Side;
using dump::State;
using measuring::number_of;

double amplification(const Side& side, std::uint32_t api, Nature nature) {
  if (nature != Nature::sum && nature != Nature::total && nature != Nature::mean &&
      nature != Nature::exponential && nature != Nature::periodic && nature != Nature::normalising)
    return 1;
  double in = 0;
  double extreme = 0;
  double out = 0;
  double elements_in = 1;
  double elements_out = 1;
  double mean = 0;
  for (const std::uint32_t i : side.apis[api].items()) {
    const Item& item = side.items[i];
    if (!item.is_tensor || measuring::unit_roundoff(side.text(item.dtype)) == 0) continue;
    const double norm = std::abs(number_of(side, item, dump::kNorm));
    if (!std::isfinite(norm)) continue;
    const double n =
        static_cast<double>(std::max<std::uint64_t>(measuring::elements_of(side.text(item.shape)), 1));
    if (item.state == State::output && out == 0) {
      out = norm;
      elements_out = n;
    } else if (item.state == State::input && in == 0) {
      elements_in = n;
      mean = number_of(side, item, dump::kMean);
    }
    if (item.state != State::input) continue;
    in = std::max(in, norm * std::sqrt(std::max(1.0, elements_in / n)));
    extreme = std::max(extreme, std::abs(number_of(side, item, dump::kMax)));
  }
  double factor = 1;
  switch (nature) {
    case Nature::sum:
      if (out > 0) factor = in * std::sqrt(std::max(1.0, elements_out / elements_in)) / out;
      break;
    case Nature::total:
      if (out > 0) factor = in / out;
      break;
    case Nature::mean:
      if (out > 0) factor = in / out / std::max(1.0, elements_in / elements_out);
      break;
    case Nature::exponential:
    case Nature::periodic:
      factor = std::min(extreme, kFar);
      break;
    case Nature::normalising: {
      const double square = in * in / elements_in;
      const double variance = square - mean * mean;
      factor = variance > 0 ? std::sqrt(square / variance) : 1;
      break;
    }
    default:
      break;
  }
  return std::isfinite(factor) ? std::clamp(factor, 1.0, kFar) : 1.0;
}

double rounding_of(const Side& side, std::uint32_t api) {
  return coarsest_of(side, api) *
         amplification(side, api, pairing::nature_of(side.parsed_name(api).operation()));
}

}  // namespace msprobe::diagnosis
