// SPDX-License-Identifier: Apache-2.0
// Were all parameters of a rank updated otherwise than in the reference (spec/diagnosis.md 4b)?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"

namespace msprobe::diagnosis {

class UpdateStatistics {
 public:
  void add(const Update& update) {
    deviations_.push_back(std::abs(update.gain - 1));
    scatters_.push_back(update.e / std::sqrt(static_cast<double>(std::max<std::uint64_t>(update.n, 1))));
    gains_.push_back(update.gain);
  }
  std::size_t size() const { return gains_.size(); }
  double median_gain() const { return median(gains_); }
  /// 2 or more: a wrong setting.
  double deviation() const {
    constexpr double kFloor = 1e-3;
    constexpr double kScatters = 4;
    return gains_.empty() ? 0 : median(deviations_) / (kFloor + kScatters * median(scatters_));
  }

 private:
  static double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  std::vector<double> deviations_;
  std::vector<double> scatters_;
  std::vector<double> gains_;
};

}  // namespace msprobe::diagnosis
