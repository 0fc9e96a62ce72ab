// SPDX-License-Identifier: Apache-2.0
#include "monitor/parting/parting.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "monitor/parting/fluctuation.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::size_t kWindow = 64;   // earlier steps that determine the fluctuation at a step
constexpr std::size_t kRefresh = 16;  // steps that share one estimate
constexpr std::size_t kShift = 16;    // steps for which a shift has to stay, except one
constexpr std::size_t kLatest = 4;    // the last quarter

/// 0 for a finite number; NaN and the two infinities are three other kinds.
int kind_of(double value) {
  if (std::isfinite(value)) return 0;
  return std::isnan(value) ? 1 : value > 0 ? 2 : 3;
}

double relative(double a, double b) {
  const double size = std::max(std::fabs(a), std::fabs(b));
  return size == 0 ? 0 : std::fabs(b / size - a / size);
}

bool has_sign(double value, double sign) {
  return !std::isfinite(value) || value * sign > 0;
}

/// Do all finite numbers of both sides have one sign, and is there any?
bool of_one_sign(std::span<const double> a, std::span<const double> b) {
  const auto first = std::ranges::find_if(a, [](double value) { return std::isfinite(value); });
  if (first == a.end() || *first == 0) return false;
  const auto fits = [sign = *first > 0 ? 1.0 : -1.0](double value) { return has_sign(value, sign); };
  return std::ranges::all_of(a, fits) && std::ranges::all_of(b, fits);
}

std::vector<double> logarithms(std::span<const double> values) {
  std::vector<double> logs(values.size());
  std::transform(values.begin(), values.end(), logs.begin(),
                 [](double value) { return std::isfinite(value) ? std::log(std::fabs(value)) : value; });
  return logs;
}

class CourseJudge {
 public:
  CourseJudge(std::span<const double> a, std::span<const double> b, const PartingRule& rule)
      : a_(a), b_(b), numbers_(a), rule_(rule) {}

  Course take() {
    survey();
    if (course_.unequal == 0) return course_;
    course_.verdict = PartingVerdict::within;
    std::vector<double> log_a;
    std::vector<double> log_b;
    logarithmic_ = !rule_.counts_nans && of_one_sign(a_, b_);
    if (logarithmic_) {
      a_ = log_a = logarithms(a_);
      b_ = log_b = logarithms(b_);
    }
    for (std::size_t at = course_.first_unequal; at < a_.size(); ++at) {
      if (parts_at(at)) break;
    }
    return course_;
  }

 private:
  bool differs_in_kind(std::size_t at) const {
    if (kind_of(a_[at]) != kind_of(b_[at])) return true;
    return rule_.counts_nans && (a_[at] == 0) != (b_[at] == 0);
  }

  bool both_finite(std::size_t at) const { return kind_of(a_[at]) == 0 && kind_of(b_[at]) == 0; }

  /// Collects the facts about all steps.
  void survey() {
    std::vector<double> late;
    const std::size_t late_from = a_.size() - (a_.size() + kLatest - 1) / kLatest;
    for (std::size_t at = 0; at < a_.size(); ++at) {
      course_.not_finite += kind_of(a_[at]) != 0 && kind_of(b_[at]) != 0;
      const bool finite = both_finite(at);
      const bool equal = finite ? a_[at] == b_[at] : kind_of(a_[at]) == kind_of(b_[at]);
      if (!equal && course_.unequal++ == 0) course_.first_unequal = at;
      if (!finite) continue;
      const double apart = equal ? 0 : relative(a_[at], b_[at]);
      course_.largest_relative = std::max(course_.largest_relative, apart);
      if (at >= late_from) late.push_back(apart);
    }
    if (!late.empty()) course_.late_relative = median(late);
  }

  /// The steps before the block; for the first block, the first steps of each run.
  std::span<const double> earlier(std::span<const double> side, std::size_t block, std::size_t most) const {
    if (block == 0) return side.first(std::min(side.size(), kRefresh + 1));
    const std::size_t from = block > most ? block - most : 0;
    return side.subspan(from, block - from);
  }

  void refresh(std::size_t at) {
    const std::size_t block = at / kRefresh * kRefresh;
    if (block == block_) return;
    block_ = block;
    reach_ = -1;
    changes_ = std::min(scatter_of_changes(earlier(a_, block, kWindow)),
                        scatter_of_changes(earlier(b_, block, kWindow)));
  }

  double reach_here() {
    if (reach_ < 0) {
      reach_ = std::min(reach(earlier(a_, block_, block_)), reach(earlier(b_, block_, block_)));
    }
    return reach_;
  }

  double floor_at(std::size_t at) const {
    if (logarithmic_) return std::max(rule_.rounding, rule_.resolution / std::fabs(numbers_[at]));
    return std::max(rule_.rounding * std::max(std::fabs(a_[at]), std::fabs(b_[at])), rule_.resolution);
  }

  /// How many of the next steps are farther from `before` than the fluctuation explains.
  struct Lasting {
    std::size_t beyond = 0;
    std::size_t seen = 0;
  };
  Lasting lasting(std::size_t at, double before, double fluctuation) const {
    Lasting found;
    for (std::size_t i = at; i < a_.size() && found.seen < rule_.lasting; ++i) {
      if (!both_finite(i)) break;
      ++found.seen;
      const double limit = rule_.tolerance * std::max(fluctuation, floor_at(i));
      found.beyond += std::fabs(b_[i] - a_[i] - before) > limit;
    }
    return found;
  }

  bool parts_at(std::size_t at) {
    if (differs_in_kind(at)) {
      note(at, PartingVerdict::parted, Parting::number, 0);
      return true;
    }
    if (!both_finite(at)) return false;
    const double difference = b_[at] - a_[at];
    const double least = rule_.tolerance * floor_at(at);
    if (std::fabs(difference) <= least && std::fabs(difference - settled_) <= least) {
      settled_ = difference;
      return false;
    }
    refresh(at);
    const double own = std::max(changes_, floor_at(at));
    const double move = std::fabs(difference - settled_);
    const double growth = move > own ? growth_before(at) : 0;
    const double jump = std::max(own, growth);
    const bool jumps = move > rule_.tolerance * jump;
    if (jumps && beyond(at, Parting::jump, settled_, jump)) return true;
    if (move > own && move > rule_.tolerance * std::max(growth, floor_at(at)) && stays_away(at, own)) {
      note(at, PartingVerdict::parted, Parting::shift, move / own);
      return true;
    }
    if (!jumps) settled_ = difference;
    if (std::fabs(difference) <= rule_.tolerance * jump) return false;
    const double drift = std::max(jump, reach_here());
    return std::fabs(difference) > rule_.tolerance * drift && beyond(at, Parting::drift, 0, drift);
  }

  /// The usual change of the difference from step to step in the last steps: differences by rounding also
  /// grow.
  double growth_before(std::size_t at) const {
    std::vector<double> differences;
    for (std::size_t i = at > kRefresh ? at - kRefresh : 0; i < at; ++i) differences.push_back(b_[i] - a_[i]);
    return size_of_changes(differences);
  }

  /// Does the difference stay on one side of the settled one, by more than the fluctuation, for many steps?
  bool stays_away(std::size_t at, double own) const {
    if (a_.size() - at < kShift) return false;
    const double sign = b_[at] - a_[at] > settled_ ? 1 : -1;
    std::size_t away = 0;
    for (std::size_t i = at; i < at + kShift; ++i) {
      away += both_finite(i) && sign * (b_[i] - a_[i] - settled_) > std::max(own, floor_at(i));
    }
    return away + 1 >= kShift;
  }

  /// Records a difference beyond the limit: as parted if it lasts, else as passing.
  bool beyond(std::size_t at, Parting how, double before, double fluctuation) {
    const double times = std::fabs(b_[at] - a_[at] - before) / fluctuation;
    const Lasting found = lasting(at, before, fluctuation);
    const bool parts = found.beyond + 1 >= found.seen && found.beyond >= std::min<std::size_t>(found.seen, 2);
    if (parts) {
      note(at, PartingVerdict::parted, how, times);
      course_.lasts = found.seen == rule_.lasting || at + found.seen < a_.size();
    } else if (course_.verdict != PartingVerdict::passing) {
      note(at, PartingVerdict::passing, how, times);
    }
    return parts;
  }

  void note(std::size_t at, PartingVerdict verdict, Parting how, double times) {
    course_.verdict = verdict;
    course_.parting = how;
    course_.at = at;
    course_.times = times;
  }

  std::span<const double> a_;
  std::span<const double> b_;
  std::span<const double> numbers_;  // of a, never logarithms
  bool logarithmic_ = false;
  const PartingRule& rule_;
  Course course_;
  std::size_t block_ = static_cast<std::size_t>(-1);
  double settled_ = 0;  // the last difference that was not a jump; runs begin equal
  double changes_ = 0;
  double reach_ = -1;
};

}  // namespace

Course judge(std::span<const double> a, std::span<const double> b, const PartingRule& rule) {
  return CourseJudge(a, b, rule).take();
}

bool is_rounding(double a, double b, const PartingRule& rule) {
  const double size = std::max(std::fabs(a), std::fabs(b));
  return std::fabs(b - a) <= rule.tolerance * std::max(rule.rounding * size, rule.resolution);
}

std::optional<Onset> onset(std::span<const double> a, std::span<const double> b, const PartingRule& rule) {
  // The limit is chosen: rounding of a few millionths is far below a change of one ten-thousandth.
  constexpr double kLeastShare = 0.02;
  double before = 0;
  for (std::size_t at = 0; at < a.size(); ++at) {
    if (kind_of(a[at]) != 0 || kind_of(b[at]) != 0) return std::nullopt;
    const double apart = std::fabs(b[at] - a[at]);
    if (is_rounding(a[at], b[at], rule)) {
      before = apart;
      continue;
    }
    if (apart <= rule.tolerance * before || a.size() < 2) return std::nullopt;
    const double change = std::fabs(at > 0 ? a[at] - a[at - 1] : a[1] - a[0]);
    if (!(apart > kLeastShare * change)) return std::nullopt;
    // Chosen limits, not derived ones.
    constexpr double kClear = 0.1;
    constexpr std::size_t kSteps = 3;
    bool clear = at > 0 && at + kSteps <= a.size() &&
                 std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(at), b.begin());
    for (std::size_t i = at; clear && i < a.size(); ++i) clear = relative(a[i], b[i]) > kClear;
    return Onset{at, change > 0 ? apart / change : HUGE_VAL, clear};
  }
  return std::nullopt;
}

double resolution_of(std::span<const double> values) {
  constexpr int kMostDigits = 12;
  constexpr double kMostUnits = 1e12;  // beyond this, doubles are too coarse
  constexpr std::size_t kLooks = 64;
  int digits = 0;
  double unit = 1;
  const auto fits = [&unit](double value) {
    const double whole = std::nearbyint(value / unit);
    return (whole != 0 || value == 0) && std::fabs(value / unit - whole) < 1e-3;
  };
  const std::size_t stride = std::max<std::size_t>(1, values.size() / kLooks);
  for (std::size_t i = 0; i < values.size(); i += stride) {
    if (!std::isfinite(values[i])) continue;
    while (!fits(values[i])) {
      if (++digits > kMostDigits || std::fabs(values[i] / unit) > kMostUnits) return 0;
      unit = std::pow(10, -digits);
    }
  }
  return digits == 0 ? 0 : unit;
}

}  // namespace msprobe::monitor
