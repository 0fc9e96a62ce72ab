// SPDX-License-Identifier: Apache-2.0
// Gradients of parameters that one side adds to those of the step before, or of the pass before in a step,
// and the other clears: optimizer.zero_grad() is missing, or comes at another place. A mean is linear: the
// mean of such a gradient is larger than golden's by the mean of the gradient before, for every parameter.
// The gradient that remains of a step is the one that the optimizer took. A reduction or clipping may have
// changed it after the backward.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "diagnosis/limits.hpp"
#include "diagnosis/step_rule.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {
namespace {

using measuring::number_of;

/// The gradients that one side adds to.
enum class Before : std::uint8_t { step, pass };

/// Gradients whose means differ clearly: `like` by the mean of the same side's gradient before, `unlike` by
/// something else.
struct Account {
  std::vector<std::uint32_t> like;
  std::vector<std::uint32_t> unlike;
  std::set<std::uint64_t> parameters;  // of `like`: a step may have several backward passes
  double by_chance = 1;                // the probability that all of `like` agree by chance
};
/// The difference of a gradient's means on the two sides.
struct MeanDifference {
  double value = 0;
  double error = 0;
  double target = 0;
  double golden = 0;
  GradientTrace before = {};
  double allowance(double other) const { return kAlike * std::abs(other) + error; }
  // NaN compares as false.
  bool equals(double other) const { return std::abs(value - other) <= allowance(other); }
  /// A gradient that is doubled looks the same where gradients change little from step to step.
  bool is_clear() const { return std::abs(value) > kMany * error && !equals(golden) && !equals(-target); }
  /// The mean of one side in the step before, if the difference equals it; else 0.
  double mean_before(bool of_target) const {
    const double sign = of_target ? 1 : -1;
    for (const double mean : of_target ? std::array{before.target_taken, before.target_mean}
                                       : std::array{before.golden_taken, before.golden_mean}) {
      if (std::abs(mean) > kMany * error && equals(sign * mean)) return sign * mean;
    }
    return 0;
  }
};

/// `index`: an item with a partner.
MeanDifference difference(const StepView& step, std::uint32_t index, const GradientTrace& before) {
  const std::uint32_t partner = step.errors.golden_item[index];
  const dump::Item& item = step.target.items[index];
  const dump::Item& other = step.golden.items[partner];
  const double ours = number_of(step.target, item, dump::kMean);
  const double theirs = number_of(step.golden, other, dump::kMean);
  const double norm = number_of(step.golden, other, dump::kNorm);
  const auto elements = static_cast<double>(measuring::elements_of(step.golden.text(other.shape)));
  const measuring::Tolerance tolerance = step.errors.tolerance_of(index, partner);
  const double rounded = std::max({tolerance.mean_sum, measuring::kSingleRoundoff,
                                   measuring::unit_roundoff(step.target.text(item.dtype))});
  return {.value = ours - theirs,
          .error = rounded * norm / std::sqrt(elements) + tolerance.mean * std::abs(theirs),
          .target = ours,
          .golden = theirs,
          .before = before};
}

/// The gradients of both sides, compared with those before.
struct Accounts {
  Account target;
  Account golden;
  std::vector<std::uint32_t> unclear;  // they differ, by means that do not show by what

  void add(const StepView& step, std::uint32_t index, std::uint64_t parameter, const GradientTrace& before) {
    const MeanDifference found = difference(step, index, before);
    if (!found.is_clear()) {
      if (step.errors.by_statistics_of(index, step.errors.golden_item[index]).e > 0) unclear.push_back(index);
      return;
    }
    for (Account* each : {&target, &golden}) {
      const double mean = found.mean_before(each == &target);
      const bool like = mean != 0;
      (like ? each->like : each->unlike).push_back(index);
      if (!like) continue;
      each->by_chance *= found.allowance(mean) / std::abs(mean);
      each->parameters.insert(parameter);
    }
  }
};

StepExplanation explanation(Account&& account, const std::vector<std::uint32_t>& unclear, bool of_target,
                            Before before) {
  StepExplanation out;
  Finding& finding = out.finding;
  finding.kind = Kind::gradient;
  finding.rule = Rule::source;
  finding.confidence = account.by_chance <= kChanceOfCertain ? Confidence::certain : Confidence::likely;
  finding.excess = measuring::kInfinite;
  finding.concerned = account.parameters.size();
  const char* const whose = of_target ? "this run" : "golden";
  const char* const other = of_target ? "golden" : "this run";
  if (before == Before::step) {
    finding.text = fmt::format(
        "the gradients of {} parameters in {} include those of the previous step, in {} they do not: the "
        "means "
        "differ by the previous step's means",
        finding.concerned, whose, other);
    finding.side = fmt::format("{} does not zero its gradients", whose);
    finding.next = fmt::format("check that {} calls optimizer.zero_grad() in every step", whose);
  } else {
    finding.text = fmt::format(
        "the gradients of {} parameters accumulate over the backward passes of the step in {}, in {} they do "
        "not: the means differ by those after the previous pass",
        finding.concerned, whose, other);
    finding.side = fmt::format("{} zeroes or replaces its gradients between two passes", other);
    finding.next = fmt::format(
        "check where {} calls optimizer.zero_grad() or assigns gradients: {} does not between passes", other,
        whose);
  }
  if (!unclear.empty())
    finding.text += fmt::format("; {} more gradients differ without showing this", unclear.size());
  out.items = std::move(account.like);
  out.items.insert(out.items.end(), unclear.begin(), unclear.end());
  return out;
}

}  // namespace

std::optional<StepExplanation> gradients_not_zeroed(const StepView& step) {
  Accounts steps;
  Accounts passes;
  std::unordered_map<std::uint64_t, GradientTrace> pass_before;
  const dump::Side& side = step.target;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.direction != dump::Direction::parameters_grad) continue;
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::uint32_t partner = step.errors.golden_item[i];
      if (partner == pairing::kNone || !side.items[i].is_tensor) continue;
      const std::uint64_t key = gradient_key(name.base, side.name(side.items[i]));
      const auto before = step.history.gradient_traces.find(key);
      if (before != step.history.gradient_traces.end()) steps.add(step, i, key, before->second);
      const auto pass = pass_before.find(key);
      if (pass != pass_before.end()) passes.add(step, i, key, pass->second);
      pass_before[key] = {.target_mean = number_of(side, side.items[i], dump::kMean),
                          .golden_mean = number_of(step.golden, step.golden.items[partner], dump::kMean)};
    }
  }
  for (const Before before : {Before::step, Before::pass}) {
    Accounts& accounts = before == Before::step ? steps : passes;
    for (Account* each : {&accounts.target, &accounts.golden}) {
      const std::size_t clear = each->like.size() + each->unlike.size();
      if (each->like.size() < kFewestCases ||
          static_cast<double>(each->like.size()) < kNearlyAll * static_cast<double>(clear))
        continue;
      return explanation(std::move(*each), accounts.unclear, each == &accounts.target, before);
    }
  }
  return std::nullopt;
}

}  // namespace msprobe::diagnosis
