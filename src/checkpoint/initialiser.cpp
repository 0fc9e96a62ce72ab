// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/initialiser.hpp"

#include <fmt/format.h>

#include "support/text.hpp"

namespace msprobe::checkpoint {

std::string initialiser_of(const Features& side, std::int64_t numel, std::int64_t fan_in) {
  const auto n = static_cast<double>(numel);
  const double mean = side.sum / n;
  const double variance = side.squares / n - mean * mean;
  if (!(variance > 0)) return {};
  const double deviation = std::sqrt(variance);
  const double kurtosis = side.fourth / n / (variance * variance);
  const double error = 1 / std::sqrt(n);
  if (std::fabs(mean) > 5 * deviation * error) return {};
  const double largest = std::max(std::fabs(side.least), std::fabs(side.most));
  // A uniform distribution has a kurtosis of 9/5 and comes near its bound; a normal one has a kurtosis of 3.
  const double bound = deviation * std::sqrt(3.0);
  if (std::fabs(kurtosis - 1.8) < 6 * error + 0.02 && largest < bound * (1 + 4 * error)) {
    for (const double gain : {1.0, std::sqrt(3.0), std::sqrt(6.0)}) {
      if (std::fabs(bound * std::sqrt(static_cast<double>(fan_in)) / gain - 1) < 3 * error + 0.01)
        return fmt::format("uniform within {}", short_number(bound, 3));
    }
    return {};
  }
  if (std::fabs(kurtosis - 3) > 20 * error + 0.02) return {};
  for (const double usual : {0.02, 0.01, 0.006, 1.0}) {
    if (std::fabs(deviation / usual - 1) < 5 * error + 0.003)
      return fmt::format("normal with deviation {}", short_number(usual, 3));
  }
  return {};
}

}  // namespace msprobe::checkpoint
