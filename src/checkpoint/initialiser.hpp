// SPDX-License-Identifier: Apache-2.0
// Checks whether a parameter looks as the initialisers of PyTorch and transformers leave it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace msprobe::checkpoint {

/// The moments of one side.
struct Features {
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  std::int64_t nan = 0;

  template <typename T>
  void add(T value) {
    const auto x = static_cast<double>(value);
    if (std::isnan(x)) {
      ++nan;
      return;
    }
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    least = std::min(least, x);
    most = std::max(most, x);
  }
};

/// Returns "normal with deviation 0.02" or "uniform within 0.0625"; empty if the moments fit neither. A
/// matrix has `fan_in` columns.
std::string initialiser_of(const Features& side, std::int64_t numel, std::int64_t fan_in);

}  // namespace msprobe::checkpoint
