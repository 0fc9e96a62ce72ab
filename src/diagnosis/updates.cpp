// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/updates.hpp"

#include <cmath>
#include <limits>
#include <span>

#include "diagnosis/limits.hpp"
#include "dump/side.hpp"
#include "support/interrupt.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::diagnosis {

using measuring::number_of;
using measuring::Tolerance;

std::optional<Update> update_between(const StepTensors& target, const StepTensors& golden) {
  const formats::StoredTensor* const all[] = {&target.before, &target.after, &golden.before, &golden.after};
  for (const formats::StoredTensor* tensor : all) {
    if (tensor->numel() == 0 || tensor->shape != golden.after.shape ||
        tensor::info(tensor->dtype).kind != tensor::DTypeKind::floating)
      return std::nullopt;
  }
  using Feed = tensor::ElementFeed<double, formats::ElementReader>;
  Feed target_before(target.before);
  Feed target_after(target.after);
  Feed golden_before(golden.before);
  Feed golden_after(golden.after);
  double between = 0;
  double dot = 0;
  double squares_target = 0;
  double squares_golden = 0;
  constexpr std::int64_t kPiece = std::int64_t{16} << 10;
  while (golden_after.remaining() > 0) {
    check_interrupt();
    const auto count = static_cast<std::size_t>(std::min(golden_after.remaining(), kPiece));
    const std::span<const double> t0 = target_before.next(count);
    const std::span<const double> t1 = target_after.next(count);
    const std::span<const double> g0 = golden_before.next(count);
    const std::span<const double> g1 = golden_after.next(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double ours = t1[i] - t0[i];
      const double theirs = g1[i] - g0[i];
      between += (ours - theirs) * (ours - theirs);
      dot += ours * theirs;
      squares_target += ours * ours;
      squares_golden += theirs * theirs;
    }
  }
  Update update;
  update.n = static_cast<std::uint64_t>(golden.after.numel());
  if (squares_golden > 0) {
    update.e = std::sqrt(between / squares_golden);
    // If one side's step has more noise, either its part along golden's step is shorter or the step itself is
    // longer. A common factor shows in both.
    const double along = dot / squares_golden;
    const double length = std::sqrt(squares_target / squares_golden);
    const bool alike = along > kHalf * length;
    update.gain = alike && std::abs(length - 1) < std::abs(along - 1) ? length : along;
  } else if (squares_target > 0) {
    update.e = update.gain = std::numeric_limits<double>::infinity();
  }
  return update;
}

std::array<double, 4> parameter_statistics(const dump::Side& side, const dump::Item& item) {
  return {number_of(side, item, dump::kMax), number_of(side, item, dump::kMin),
          number_of(side, item, dump::kMean), number_of(side, item, dump::kNorm)};
}

namespace {

constexpr std::size_t kMeanAt = 2;
constexpr std::size_t kNormAt = 3;

/// Size of a step in parts of the parameter, as far as its statistics show it.
double size_of(const std::array<double, 4>& before, const std::array<double, 4>& now, double n,
               const Tolerance& tolerance) {
  const double norm = std::abs(now[kNormAt]);
  const double rms = norm / std::sqrt(n);
  if (!(rms > 0) || !std::isfinite(rms) || !std::isfinite(before[kNormAt])) return 1;
  double size = 0;
  if (std::abs(norm - std::abs(before[kNormAt])) > tolerance.norm * norm)
    size = std::sqrt(std::abs(norm * norm - before[kNormAt] * before[kNormAt])) / norm;
  for (std::size_t i = 0; i < kNormAt; ++i) {
    const double scale = i == kMeanAt ? rms : std::max(rms, std::abs(now[i]));
    const double allowed = i == kMeanAt ? tolerance.mean * std::abs(now[i]) + tolerance.mean_sum * rms
                                        : tolerance.extreme * std::abs(now[i]);
    const double moved = std::abs(now[i] - before[i]);
    if (std::isfinite(moved) && moved > allowed) size = std::max(size, moved / scale);
  }
  return std::min(size, 1.0);
}

}  // namespace

ParameterStep step_between(const ParameterTrace& before, const ParameterTrace& now, std::uint64_t n,
                           const Tolerance& tolerance) {
  ParameterStep step;
  if (n == 0) return step;
  const double elements = static_cast<double>(n);
  step.n = n;
  step.target = size_of(before.target, now.target, elements, tolerance);
  step.golden = size_of(before.golden, now.golden, elements, tolerance);
  step.coarse = tolerance.norm;
  // A mean may hardly move by chance, as a norm may: it shows a step if it moved a hundred times what it
  // hides.
  Tolerance blind = tolerance;
  blind.norm = std::numeric_limits<double>::infinity();
  blind.mean *= kFar;
  blind.mean_sum *= kFar;
  const bool shown = size_of(before.target, now.target, elements, blind) > 0 ||
                     size_of(before.golden, now.golden, elements, blind) > 0;
  if (!shown) step.by_norm = std::max(step.target, step.golden);
  const double rms = std::abs(now.golden[kNormAt]) / std::sqrt(elements);
  for (std::size_t i = 0; i < kNormAt; ++i) {
    const double ours = std::abs(now.target[i] - before.target[i]);
    const double theirs = std::abs(now.golden[i] - before.golden[i]);
    const double rounded =
        i == kMeanAt ? tolerance.mean * std::abs(now.golden[i]) + tolerance.mean_sum * rms : 0;
    if (!(ours > rounded) || !(theirs > rounded) || !std::isfinite(ours / theirs)) continue;
    step.ratios[i] = ours / theirs;
    // Averaging leaves little of the rounding in a mean.
    const double scale = i == kMeanAt ? rms / std::sqrt(elements) : std::max(rms, std::abs(now.golden[i]));
    step.sizes[i] = std::max(ours, theirs) / scale;
  }
  return step;
}

bool ParameterStep::rests_alone(double u) const {
  if (n == 0 || (target > 0) == (golden > 0)) return false;
  // Where norms do not show a step, one element that rests because of rounding looks the same as a parameter
  // that rests as a whole.
  // A step d changes the norm by d^2 / 2 of it: a norm in six digits hides steps of 3e-3. Where few elements
  // move, the change of the norm has either sign and may be small by chance: below a hundredth of the other
  // side's change it is so once in a hundred.
  const double hidden = by_norm > 0 ? kMany * std::sqrt(2 * coarse) : kFew * coarse;
  return std::max(target, golden) > std::max({kMany * u / static_cast<double>(n), kRightKernel, hidden});
}

void StepRatios::add(const ParameterStep& step, double u) {
  bool counts = false;
  for (std::size_t i = 0; i < step.ratios.size(); ++i) {
    if (!(step.ratios[i] > 0) || !(step.sizes[i] > kFew * u)) continue;
    logarithms_.push_back(std::log(step.ratios[i]));
    counts = true;
  }
  if (counts) ++parameters_;
}

double StepRatios::median() const {
  return std::exp(median_of(logarithms_));
}

double StepRatios::deviation() const {
  if (parameters_ < kFewestCases) return 0;
  const double middle = median_of(logarithms_);
  std::vector<double> distances;
  for (const double each : logarithms_) distances.push_back(std::abs(each - middle));
  const double scatter = median_of(distances) / std::sqrt(static_cast<double>(logarithms_.size()));
  return std::abs(middle) / (1 / kFar + kMany * scatter);
}

bool Drift::stands_out(double e, bool is_vector, std::optional<double> gradient, double u) const {
  // A gradient that cancels, as that of the bias of attention's keys does, is noise, and its update is a step
  // in any direction. Where the gradient is not known, any vector may have such a gradient.
  const bool noise = gradient ? *gradient > kNoisy && (is_vector || *gradient > kFar * gradients) : is_vector;
  // Vectors begin as zeros or ones, so that the drift of other parameters soon is most of their value.
  const bool most = noise || (is_vector && median > 0);
  return small && e > std::max(kFar * median, most ? kHalf : trained_rounding(u) / kMargin);
}

std::optional<Drift> drift_of(std::vector<double> errors, double u) {
  Drift drift;
  drift.parameters = errors.size();
  std::erase_if(errors, [](double e) { return !(e > 0); });
  drift.differing = errors.size();
  if (errors.empty()) return std::nullopt;
  drift.largest = *std::max_element(errors.begin(), errors.end());
  // Where most parameters are equal, the runs have hardly drifted.
  if (2 * drift.differing < drift.parameters) {
    drift.small = true;
    return drift;
  }
  drift.median = median_of(errors);
  const auto quarter = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() * 3 / 4);
  std::nth_element(errors.begin(), quarter, errors.end());
  drift.quarter = *quarter;
  drift.small = drift.median <= trained_rounding(u);
  return drift;
}

}  // namespace msprobe::diagnosis
