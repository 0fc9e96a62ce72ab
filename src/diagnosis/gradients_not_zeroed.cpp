// SPDX-License-Identifier: Apache-2.0
// Gradients of parameters that one side adds to those of the step before: optimizer.zero_grad() is missing,
// or comes at another place. A mean is linear: the mean of such a gradient is larger than golden's by the
// mean of the gradient of the step before, for every parameter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "diagnosis/step_rule.hpp"
#include "dump/names.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {
namespace {

/// The means must agree to a thousandth of what is left over, and what is left over must exceed what the
/// recorded means are off by ten times: one parameter agrees by chance once in some thousand.
constexpr double kAgreement = 1e-3;
constexpr double kClear = 10;
/// Three parameters agree by chance once in 10^9; the rest may be too small to show it.
constexpr std::size_t kLeast = 3;
constexpr double kMost = 0.8;  // of the gradients that differ clearly

class GradientsNotZeroed final : public StepRule {
 public:
  std::optional<StepExplanation> examine(const StepView& step) const override {
    if (step.history.gradient_traces.empty()) return std::nullopt;
    Count target;
    Count golden;
    std::size_t clear = 0;
    const dump::Side& side = step.target;
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      const auto name = dump::parse_entry_name(side.text(side.apis[api].name));
      if (!name || name->direction != dump::Direction::parameters_grad) continue;
      for (std::uint32_t i = side.apis[api].first; i < side.apis[api].first + side.apis[api].count; ++i) {
        const std::optional<Difference> found = difference(step, name->base, i);
        if (!found) continue;
        ++clear;
        if (found->equals(found->target_before)) target.add(i);
        if (found->equals(-found->golden_before)) golden.add(i);
      }
    }
    for (const Count* count : {&target, &golden}) {
      if (count->items.size() < kLeast ||
          static_cast<double>(count->items.size()) < kMost * static_cast<double>(clear))
        continue;
      return explanation(step, *count, count == &target);
    }
    return std::nullopt;
  }

 private:
  struct Count {
    std::vector<std::uint32_t> items;
    void add(std::uint32_t item) { items.push_back(item); }
  };
  /// Of two means that differ clearly.
  struct Difference {
    double value = 0;
    double error = 0;
    double target_before = 0;
    double golden_before = 0;
    bool equals(double other) const {
      return std::abs(other) > kClear * error &&
             std::abs(value - other) <= kAgreement * std::abs(other) + error;
    }
  };

  static std::optional<Difference> difference(const StepView& step, std::string_view module,
                                              std::uint32_t index) {
    const std::uint32_t partner = step.errors.golden_item[index];
    const dump::Item& item = step.target.items[index];
    if (partner == kNone || !item.is_tensor) return std::nullopt;
    const auto before = step.history.gradient_traces.find(gradient_key(module, step.target.name(item)));
    if (before == step.history.gradient_traces.end()) return std::nullopt;
    const dump::Item& other = step.golden.items[partner];
    const double ours = number_of(step.target, item, dump::kMean);
    const double theirs = number_of(step.golden, other, dump::kMean);
    const double norm = number_of(step.golden, other, dump::kNorm);
    const auto elements = static_cast<double>(elements_of(step.golden.text(other.shape)));
    const Tolerance tolerance = step.errors.tolerance_of(index, partner);
    const double rounded =
        std::max({tolerance.mean_sum, kSingleRoundoff, unit_roundoff(step.target.text(item.dtype))});
    Difference found{.value = ours - theirs,
                     .error = rounded * norm / std::sqrt(elements) + tolerance.mean * std::abs(theirs),
                     .target_before = before->second.target[kMeanOfTrace],
                     .golden_before = before->second.golden[kMeanOfTrace]};
    // NaN compares as false.
    return std::abs(found.value) > kClear * found.error ? std::optional(found) : std::nullopt;
  }

  static StepExplanation explanation(const StepView& step, const Count& count, bool of_target) {
    StepExplanation out;
    out.items = count.items;
    Finding& finding = out.finding;
    finding.kind = Kind::gradient;
    finding.rule = Rule::source;
    finding.confidence = Confidence::certain;
    finding.excess = kInfinite;
    finding.item = out.items.front();
    finding.target_api = step.target.items[finding.item].api;
    finding.concerned = out.items.size();
    const char* const whose = of_target ? "this run" : "golden";
    finding.text = fmt::format(
        "the gradients of {} parameters contain those of the step before, {}: their means differ "
        "from {} by exactly these",
        out.items.size(), of_target ? "in golden they do not" : "in this run they do not",
        of_target ? "golden's" : "this run's");
    finding.side = fmt::format("{} adds up gradients over steps", whose);
    finding.next = fmt::format(
        "look for optimizer.zero_grad() in {}: it is missing, or is not called in every step", whose);
    return out;
  }
};

}  // namespace

std::unique_ptr<StepRule> gradients_not_zeroed() {
  return std::make_unique<GradientsNotZeroed>();
}

}  // namespace msprobe::diagnosis
