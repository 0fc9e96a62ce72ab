// SPDX-License-Identifier: Apache-2.0
// What a third run, of the golden code on other kernels, differs from golden by (--noise-floor).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comparison/metrics/tensor_metrics.hpp"
#include "comparison/side.hpp"

namespace msprobe::compare {

class NoiseFloor {
 public:
  /// Throws what the readers throw. `golden` must outlive it.
  NoiseFloor(const dump::RankDump& third, const Side& golden, const MeasureTraits& traits);

  /// Relative error of the third run's tensor; 0 where it has none. Where both have data files, these are
  /// read; throws what their readers throw.
  double operator()(std::uint32_t golden_item) const;

 private:
  const Side& golden_;
  MeasureTraits traits_;
  Side third_;
  std::vector<std::uint32_t> partners_;  // of golden items
};

}  // namespace msprobe::compare
