// SPDX-License-Identifier: Apache-2.0
// Were all parameters of a rank updated otherwise than in the reference (spec/diagnosis.md 4b)?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"
#include "formats/stored_tensor.hpp"

namespace msprobe::diagnosis {

/// A parameter of one side, before and after a step.
struct StepTensors {
  formats::StoredTensor before;
  formats::StoredTensor after;
};

/// Nothing for tensors that are not of one shape, or not floating. Throws FormatError, IoError for files that
/// are broken.
std::optional<Update> update_between(const StepTensors& target, const StepTensors& golden);

class UpdateStatistics {
 public:
  void add(const Update& update) {
    const double deviation = std::abs(update.gain - 1);
    deviations_.push_back(deviation);
    // What is left of the error besides the common factor: noise, which scatters the factor.
    const double noise = std::sqrt(std::max(0.0, update.e * update.e - deviation * deviation));
    scatters_.push_back(noise / std::sqrt(static_cast<double>(std::max<std::uint64_t>(update.n, 1))));
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
