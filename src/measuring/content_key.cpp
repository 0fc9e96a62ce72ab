// SPDX-License-Identifier: Apache-2.0
#include "measuring/content_key.hpp"

#include <bit>
#include <cmath>

#include "measuring/measures.hpp"

namespace msprobe::measuring {
namespace {

std::uint64_t stirred(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

}  // namespace

std::uint64_t content_key(const dump::Side& side, const dump::Item& item) {
  if (!item.is_tensor) return 0;
  const double largest = number_of(side, item, dump::kMax);
  const double least = number_of(side, item, dump::kMin);
  const std::uint64_t n = elements_of(side.text(item.shape));
  if (n == 0 || std::isnan(largest) || std::isnan(least) || (largest == least && n > 1)) return 0;
  double size = number_of(side, item, dump::kNorm);
  if (std::isnan(size)) {
    // All masks of one shape have the same Max and Min; the count of True distinguishes them if it is
    // recorded.
    const auto count = side.counts.find(item.name);
    if (count != side.counts.end()) {
      size = count->second;
    } else if (side.text(item.dtype).ends_with("bool")) {
      return 0;
    }
  }
  std::uint64_t key = stirred(n);
  for (const double value : {largest, least, size})
    key = stirred(key ^ std::bit_cast<std::uint64_t>(value)) + 0x9e3779b97f4a7c15ULL;
  return key == 0 ? 1 : key;
}

}  // namespace msprobe::measuring
