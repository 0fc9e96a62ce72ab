// SPDX-License-Identifier: Apache-2.0
// Were all parameters of a rank updated otherwise than in the reference (docs/how-it-decides.md, "Evidence")?
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/imports.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "formats/stored_tensor.hpp"

namespace msprobe::diagnosis {

/// What a step did to a parameter: its difference to the step before, of both sides.
struct Update {
  std::uint64_t n = 0;  // elements
  double e = 0;         // random error of the difference, relative to golden's
  double gain = 1;      // of the difference, target over golden's
};

/// A parameter of one side, before and after a step.
struct StepTensors {
  formats::StoredTensor before;
  formats::StoredTensor after;
};

/// Nothing for tensors that are not of one shape, or not floating. Throws FormatError, IoError for files that
/// are broken.
std::optional<Update> update_between(const StepTensors& target, const StepTensors& golden);

/// The upper one of two; 0 of none.
inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Max, Min, Mean and Norm as recorded.
std::array<double, 4> parameter_statistics(const dump::Side& side, const dump::Item& item);

/// What statistics show of the last step of a parameter.
struct ParameterStep {
  std::uint64_t n = 0;  // elements; 0 if the step before is not known
  double target = 1;    // size of the step, in parts of the parameter's
  double golden = 1;
  std::array<double, 3> ratios{};  // step of the target over golden's, of Max, Min and Mean; 0: not known
  std::array<double, 3> sizes{};   // the larger of the two steps, in parts of what has moved

  double coarse = 0;  // of the norm, what does not show

  /// One side alone moved, by more than the rounding of a few elements.
  bool rests_alone(double u) const;
};

/// What is within the tolerance of the statistics is no movement.
ParameterStep step_between(const ParameterTrace& before, const ParameterTrace& now, std::uint64_t n,
                           const Tolerance& tolerance = {});

/// From statistics: was every step longer, or shorter, than in the reference?
class StepRatios {
 public:
  void add(const ParameterStep& step, double u);
  std::size_t parameters() const { return parameters_; }
  double median() const;
  /// kWrongSetting or more: a wrong setting.
  double deviation() const;

 private:
  std::vector<double> logarithms_;
  std::size_t parameters_ = 0;
};

/// Runs that were trained before the first recorded step, and whose parameters differ.
struct Drift {
  std::size_t parameters = 0;
  std::size_t differing = 0;
  double median = 0;   // of the errors of those that differ
  double quarter = 0;  // one in four has a larger error
  double largest = 0;
  double gradients = 0;  // median of the errors of gradients of parameters behind the step
  bool small = false;    // no more than training makes of rounding

  /// Is the error of one parameter out of line with those of the others? `gradient`: the error of its own, if
  /// known.
  bool stands_out(double e, bool is_vector, std::optional<double> gradient, double u) const;
};

/// From the errors of all parameters; nothing where all are equal. `u`: unit roundoff of the coarsest.
std::optional<Drift> drift_of(std::vector<double> errors, double u);

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
  double median_gain() const { return median_of(gains_); }
  /// kWrongSetting or more: a wrong setting.
  double deviation() const {
    return gains_.empty()
               ? 0
               : median_of(deviations_) / (kSettingByTensors + kScattersByTensors * median_of(scatters_));
  }

 private:
  std::vector<double> deviations_;
  std::vector<double> scatters_;
  std::vector<double> gains_;
};

}  // namespace msprobe::diagnosis
