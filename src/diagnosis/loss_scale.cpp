// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/loss_scale.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "dump/names.hpp"
#include "measuring/measures.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Side;
using dump::Training;
using measuring::elements_of;
using measuring::number_of;
using pairing::Alignment;
using pairing::kNone;

/// Chosen: the number of first gradients of a backward. A fault of the model may change later ones.
constexpr std::size_t kFirstGradients = 8;
bool is_same_factor(double factor, double other) {
  return std::abs(factor - other) <= kTrainedRoundingHalf * std::abs(other);
}

/// The factor that most of the first gradients have; nothing if they have no common factor, or it is 1.
std::optional<double> factor_of_gradients(const Side& target, const Side& golden, const Alignment& alignment,
                                          const std::vector<std::uint32_t>& golden_item) {
  std::vector<double> factors;
  for (std::uint32_t api = 0; api < target.apis.size() && factors.size() < kFirstGradients; ++api) {
    if (!alignment.has_golden(api)) continue;
    const dump::EntryName name = target.parsed_name(api);
    if (name.direction != Direction::backward) continue;
    for (const std::uint32_t i : target.apis[api].items()) {
      if (golden_item[i] == kNone || !target.items[i].is_tensor) continue;
      const double factor = number_of(target, target.items[i], dump::kNorm) /
                            number_of(golden, golden.items[golden_item[i]], dump::kNorm);
      if (std::isfinite(factor) && factor > 0) factors.push_back(factor);
    }
  }
  for (const double factor : factors) {
    const auto same = std::count_if(factors.begin(), factors.end(),
                                    [&](double other) { return is_same_factor(other, factor); });
    if (2 * static_cast<std::size_t>(same) > factors.size())
      return is_same_factor(factor, 1) ? std::nullopt : std::optional(factor);
  }
  return std::nullopt;
}

/// Visits the outputs after the backward: how much larger each of them is, with the operation that gave it.
template <typename Visit>
void each_ratio_behind(const Side& target, const Side& golden, const std::vector<std::uint32_t>& golden_item,
                       Visit&& visit) {
  for (std::size_t api = target.apis.size(); api-- > 0;) {
    const dump::EntryName name = target.parsed_name(api);
    if (name.direction == Direction::backward) break;
    for (const std::uint32_t i : target.apis[api].items()) {
      const Item& item = target.items[i];
      if (golden_item[i] == kNone || !item.is_tensor || item.state != dump::State::output) continue;
      const double ratio =
          number_of(target, item, dump::kNorm) / number_of(golden, golden.items[golden_item[i]], dump::kNorm);
      if (std::isfinite(ratio)) visit(name.operation(), item, ratio);
    }
  }
}

/// Whether nearly all outputs after the backward are without a factor.
bool is_gone(const Side& target, const Side& golden, const std::vector<std::uint32_t>& golden_item) {
  std::size_t all = 0;
  std::size_t without = 0;
  each_ratio_behind(target, golden, golden_item, [&](std::string_view, const Item&, double ratio) {
    ++all;
    if (is_same_factor(ratio, 1)) ++without;
  });
  return 8 * (all - without) < without;
}

/// Whether the norm by which gradients are clipped has the factor. Clipping removes any factor, but it is not
/// a way to undo a scale.
bool is_clipped_away(const Side& target, const Side& golden, const std::vector<std::uint32_t>& golden_item,
                     double factor) {
  std::size_t norms = 0;
  std::size_t scaled = 0;
  each_ratio_behind(target, golden, golden_item,
                    [&](std::string_view operation, const Item& item, double ratio) {
                      if (!pairing::gives_size(operation) || elements_of(target.text(item.shape)) != 1)
                        return;
                      ++norms;
                      if (is_same_factor(ratio, factor)) ++scaled;
                    });
  return 2 * scaled > norms;
}

/// The numbers of at least kMany by which the loss is multiplied before the backward: weights of losses are
/// not that large.
std::vector<double> scales_of(const Side& side) {
  constexpr std::uint32_t kLast = 16;
  std::vector<double> scales;
  const std::uint32_t end = first_backward(side);
  for (std::uint32_t api = end > kLast ? end - kLast : 0; api < end; ++api) {
    const dump::EntryName name = side.parsed_name(api);
    const bool multiplies = pairing::is_elementwise(name.operation()) &&
                            pairing::nature_of(name.operation()) == dump::Nature::ordinary;
    if (name.direction != Direction::forward || !multiplies) continue;
    bool number = false;
    std::vector<double> factors;
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      const bool single = !item.is_tensor || elements_of(side.text(item.shape)) == 1;
      const double value = number_of(side, item, dump::kMax);
      if (item.state == dump::State::input && single && value >= kMany) factors.push_back(value);
      number = number || (item.state == dump::State::output && item.is_tensor && single);
    }
    if (number) scales.insert(scales.end(), factors.begin(), factors.end());
  }
  return scales;
}

/// Whether most of the gradients that the optimizer takes have lost the factor of the gradients of the
/// backward.
bool is_taken_out(const Side& target, const Side& golden, const std::vector<std::uint32_t>& golden_item,
                  double factor) {
  std::map<std::string, double> factors;  // by parameter: of the last gradient
  for (const TakenGradient& gradient : taken_gradients(target, golden, golden_item))
    factors[gradient.parameter] = gradient.golden / gradient.target;
  if (factors.empty()) return is_gone(target, golden, golden_item);
  const auto out = std::count_if(factors.begin(), factors.end(),
                                 [&](const auto& each) { return is_same_factor(each.second, factor); });
  return 2 * static_cast<std::size_t>(out) > factors.size();
}

/// Whether the step was skipped. If no scaler is known, an optimizer that makes no step shows it.
bool is_skipped(const Training& training) {
  if (training.loss_scale) return training.loss_scale->skipped;
  return training.tied.has_value() && training.optimizers.empty();
}

/// The first entry under test whose gradient is not finite, in that run or in golden.
std::uint32_t first_overflow(const Side& target, const Side& golden, const Alignment& alignment,
                             bool in_target) {
  for (std::uint32_t api = 0; api < target.apis.size(); ++api) {
    if (!alignment.has_golden(api)) continue;
    const dump::EntryName name = target.parsed_name(api);
    if (name.direction == Direction::forward) continue;
    const Side& side = in_target ? target : golden;
    for (const std::uint32_t i : side.apis[in_target ? api : alignment.golden_of[api]].items()) {
      const Item& item = side.items[i];
      if (!item.is_tensor) continue;
      for (const dump::Statistic extreme : {dump::kMax, dump::kMin}) {
        const dump::ValueKind kind = item.statistics[extreme].kind;
        const bool known = kind != dump::ValueKind::missing && kind != dump::ValueKind::none;
        if (known && !std::isfinite(number_of(side, item, extreme))) return api;
      }
    }
  }
  return kNone;
}

}  // namespace

bool LossScale::reaches(const Side& side, std::uint32_t api) const {
  const dump::EntryName name = side.parsed_name(api);
  if (api >= first_backward || name.direction != Direction::forward) return true;
  for (const std::uint32_t i : side.apis[api].items()) {
    const Item& item = side.items[i];
    if (item.state == dump::State::output && item.is_tensor && elements_of(side.text(item.shape)) == 1)
      return true;
  }
  return false;
}

bool LossScale::explains(double ours, double theirs, double tolerance) const {
  const auto is = [&](double expected) {
    return std::abs(ours - expected) <= tolerance * std::abs(expected);
  };
  return is(theirs * factor) || is(theirs / factor);
}

std::optional<LossScale> loss_scale(const Side& target, const Side& golden, const Alignment& alignment,
                                    const std::vector<std::uint32_t>& golden_item) {
  const Training& ours = target.header.training;
  const Training& theirs = golden.header.training;
  LossScale scale;
  scale.first_backward = first_backward(target);
  scale.behind_backward = behind_backward(target);
  scale.target = ours.loss_scale.value_or(dump::LossScaling{}).scale;
  scale.golden = theirs.loss_scale.value_or(dump::LossScaling{}).scale;
  scale.skips = is_skipped(ours);
  if (scale.skips != is_skipped(theirs))
    scale.overflow = first_overflow(target, golden, alignment, scale.skips);
  if (scale.target > 0 && scale.golden > 0) {
    scale.factor = scale.target / scale.golden;
    return scale.factor == 1 ? std::nullopt : std::optional(scale);
  }
  const auto factor = factor_of_gradients(target, golden, alignment, golden_item);
  if (!factor) return std::nullopt;
  // Either a scaler alone scales the loss, or the program multiplies it by numbers.
  std::vector<double> our_scales = scale.target > 0 ? std::vector<double>{scale.target} : scales_of(target);
  std::vector<double> their_scales = scale.golden > 0 ? std::vector<double>{scale.golden} : scales_of(golden);
  our_scales.push_back(1);
  their_scales.push_back(1);
  for (const double a : our_scales) {
    for (const double b : their_scales) {
      if (a == b || std::abs(a / b - *factor) > kTrainedRoundingHalf * *factor) continue;
      scale.target = a;
      scale.golden = b;
      scale.factor = a / b;
      return scale;
    }
  }
  scale.target = scale.golden = 0;
  scale.factor = *factor;
  if (scale.overflow != kNone) return scale;
  if (!is_taken_out(target, golden, golden_item, *factor)) return std::nullopt;
  if (is_clipped_away(target, golden, golden_item, *factor)) return std::nullopt;
  return scale;
}

}  // namespace msprobe::diagnosis
