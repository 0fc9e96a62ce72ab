// SPDX-License-Identifier: Apache-2.0
// Gradients of parameters that one side adds to those of the step before: optimizer.zero_grad() is missing,
// or comes at another place. A mean is linear: the mean of such a gradient is larger than golden's by the
// mean of the gradient of the step before, for every parameter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "diagnosis/limits.hpp"
#include "diagnosis/step_rule.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {
namespace {

using measuring::number_of;

/// Gradients whose means differ clearly: `like` by the mean of the same side's step before, `unlike` by
/// something else.
struct Account {
  std::vector<std::uint32_t> like;
  std::vector<std::uint32_t> unlike;
  double by_chance = 1;  // the probability that all of `like` agree by chance
};
/// The difference of a gradient's means on the two sides.
struct MeanDifference {
  double value = 0;
  double error = 0;
  double target = 0;
  double golden = 0;
  double target_before = 0;
  double golden_before = 0;
  double allowance(double other) const { return kAlike * std::abs(other) + error; }
  // NaN compares as false.
  bool equals(double other) const { return std::abs(value - other) <= allowance(other); }
  /// A gradient that is doubled looks the same where gradients change little from step to step.
  bool is_clear() const {
    return std::abs(value) > kClearMean * error && !equals(golden) && !equals(-target);
  }
  bool is_before(double before) const { return std::abs(before) > kClearMean * error && equals(before); }
};

std::optional<MeanDifference> difference(const StepView& step, std::string_view module, std::uint32_t index) {
  const std::uint32_t partner = step.errors.golden_item[index];
  const dump::Item& item = step.target.items[index];
  if (partner == pairing::kNone || !item.is_tensor) return std::nullopt;
  const auto before = step.history.gradient_traces.find(gradient_key(module, step.target.name(item)));
  if (before == step.history.gradient_traces.end()) return std::nullopt;
  const dump::Item& other = step.golden.items[partner];
  const double ours = number_of(step.target, item, dump::kMean);
  const double theirs = number_of(step.golden, other, dump::kMean);
  const double norm = number_of(step.golden, other, dump::kNorm);
  const auto elements = static_cast<double>(measuring::elements_of(step.golden.text(other.shape)));
  const measuring::Tolerance tolerance = step.errors.tolerance_of(index, partner);
  const double rounded = std::max({tolerance.mean_sum, measuring::kSingleRoundoff,
                                   measuring::unit_roundoff(step.target.text(item.dtype))});
  return MeanDifference{.value = ours - theirs,
                        .error = rounded * norm / std::sqrt(elements) + tolerance.mean * std::abs(theirs),
                        .target = ours,
                        .golden = theirs,
                        .target_before = before->second.target_mean,
                        .golden_before = before->second.golden_mean};
}

StepExplanation explanation(Account&& account, const std::vector<std::uint32_t>& unclear, bool of_target) {
  StepExplanation out;
  Finding& finding = out.finding;
  finding.kind = Kind::gradient;
  finding.rule = Rule::source;
  finding.confidence = account.by_chance <= kChanceOfCertain ? Confidence::certain : Confidence::likely;
  finding.excess = measuring::kInfinite;
  finding.concerned = account.like.size();
  const char* const whose = of_target ? "this run" : "golden";
  const char* const other = of_target ? "golden" : "this run";
  finding.text = fmt::format(
      "the gradients of {} parameters in {} include those of the previous step, in {} they do not: the means "
      "differ by the previous step's means",
      account.like.size(), whose, other);
  if (!unclear.empty()) finding.text += fmt::format("; {} more differ without showing this", unclear.size());
  finding.side = fmt::format("{} accumulates gradients over steps", whose);
  finding.next = fmt::format("check that {} calls optimizer.zero_grad() in every step", whose);
  out.items = std::move(account.like);
  out.items.insert(out.items.end(), unclear.begin(), unclear.end());
  return out;
}

}  // namespace

std::optional<StepExplanation> gradients_not_zeroed(const StepView& step) {
  if (step.history.gradient_traces.empty()) return std::nullopt;
  Account target;
  Account golden;
  std::vector<std::uint32_t> unclear;  // they differ, by means that do not show by what
  const dump::Side& side = step.target;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.direction != dump::Direction::parameters_grad) continue;
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::optional<MeanDifference> found = difference(step, name.base, i);
      if (!found) continue;
      if (!found->is_clear()) {
        if (step.errors.by_statistics_of(i, step.errors.golden_item[i]).e > 0) unclear.push_back(i);
        continue;
      }
      for (Account* each : {&target, &golden}) {
        const double before = each == &target ? found->target_before : -found->golden_before;
        const bool like = found->is_before(before);
        (like ? each->like : each->unlike).push_back(i);
        if (like) each->by_chance *= found->allowance(before) / std::abs(before);
      }
    }
  }
  for (Account* each : {&target, &golden}) {
    const std::size_t clear = each->like.size() + each->unlike.size();
    if (each->like.size() < kFewestCases ||
        static_cast<double>(each->like.size()) < kAgreeingPart * static_cast<double>(clear))
      continue;
    return explanation(std::move(*each), unclear, each == &target);
  }
  return std::nullopt;
}

}  // namespace msprobe::diagnosis
