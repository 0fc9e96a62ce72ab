// SPDX-License-Identifier: Apache-2.0
// Decides whether all parameters of a rank were updated differently from golden's (docs/how-it-decides.md,
// "Evidence").
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/limits.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "dump/side.hpp"
#include "formats/stored_tensor.hpp"

namespace msprobe::diagnosis {

/// The update of a parameter: its difference from the step before, on both sides.
struct Update {
  std::uint64_t n = 0;  // elements
  double e = 0;         // random error of the update, relative to golden's
  double gain = 1;      // size of the update, target over golden's
};

/// A parameter of one side, before and after a step.
struct StepTensors {
  formats::StoredTensor before;
  formats::StoredTensor after;
};

/// Measures an update; nothing for tensors of different shapes, or that are not floating. Throws FormatError
/// or IoError for files that are broken.
std::optional<Update> update_between(const StepTensors& target, const StepTensors& golden);

/// The median: the upper one of two middle values; 0 for an empty list.
inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Max, Min, Mean and Norm of a parameter, as recorded.
std::array<double, 4> parameter_statistics(const dump::Side& side, const dump::Item& item);

/// The last step of a parameter, as far as statistics show it.
struct ParameterStep {
  std::uint64_t n = 0;  // elements; 0 if the step before is not known
  double target = 1;    // size of the step, in parts of the parameter's
  double golden = 1;
  std::array<double, 3> ratios{};  // step of the target over golden's, of Max, Min and Mean; 0: not known
  std::array<double, 3> sizes{};   // the larger of the two steps, in parts of what has moved

  double coarse = 0;   // how much of the norm the statistics hide
  double by_norm = 0;  // the larger step if the norm alone shows it, else 0

  /// Whether one side alone moved, by more than the rounding of a few elements.
  bool rests_alone(double u) const;
};

/// Measures a step from statistics. A change within the tolerance of the statistics does not count as
/// movement.
ParameterStep step_between(const ParameterTrace& before, const ParameterTrace& now, std::uint64_t n,
                           const measuring::Tolerance& tolerance = {});

/// Decides from statistics whether every step was longer, or every one shorter, than golden's.
class StepRatios {
 public:
  void add(const ParameterStep& step, double u);
  std::size_t parameters() const { return parameters_; }
  double median() const;
  /// kMargin or more: a wrong setting.
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
  double gradients = 0;  // median error of the gradients of parameters after the step
  bool small = false;    // no larger than rounding grows to in training

  /// Whether a parameter has a much larger error than the others. `gradient`: the error of its gradient, if
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
    // The rest of the error besides the common factor is noise, which scatters the factor.
    const double noise = std::sqrt(std::max(0.0, update.e * update.e - deviation * deviation));
    scatters_.push_back(noise / std::sqrt(static_cast<double>(std::max<std::uint64_t>(update.n, 1))));
    gains_.push_back(update.gain);
  }
  std::size_t size() const { return gains_.size(); }
  double median_gain() const { return median_of(gains_); }
  /// kMargin or more: a wrong setting.
  double deviation() const {
    return gains_.empty() ? 0 : median_of(deviations_) / (kAlike + kChance * median_of(scatters_));
  }

 private:
  std::vector<double> deviations_;
  std::vector<double> scatters_;
  std::vector<double> gains_;
};

}  // namespace msprobe::diagnosis
