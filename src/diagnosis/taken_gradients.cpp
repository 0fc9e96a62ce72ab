// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/taken_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/run_outputs.hpp"
#include "dump/names.hpp"
#include "measuring/measures.hpp"
#include "pairing/alignment.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
using measuring::kInfinite;
using measuring::number_of;

std::map<std::string, double> taken_norms(const dump::OptimizerSettings& optimizer) {
  std::map<std::string, double> norms;
  for (const dump::OptimizerGroup& group : optimizer.groups) {
    for (std::size_t i = 0; i < std::min(group.parameters.size(), group.gradient_norms.size()); ++i) {
      if (!std::isnan(group.gradient_norms[i])) norms[group.parameters[i]] = group.gradient_norms[i];
    }
  }
  return norms;
}

std::optional<TakenNorms> taken_norms(const dump::Side& target, const dump::Side& golden) {
  const auto& ours = target.header.training.optimizers;
  const auto& theirs = golden.header.training.optimizers;
  if (ours.size() != 1 || theirs.size() != 1) return std::nullopt;
  return TakenNorms(taken_norms(ours[0]), taken_norms(theirs[0]));
}

std::set<std::string> taken_alike(const dump::Side& target, const dump::Side& golden) {
  const auto& ours = target.header.training.optimizers;
  const auto& theirs = golden.header.training.optimizers;
  std::set<std::string> alike;
  std::set<std::string> other;
  for (std::size_t i = 0; ours.size() == theirs.size() && i < ours.size(); ++i) {
    const std::map<std::string, double> norms = taken_norms(ours[i]);
    for (const auto& [name, norm] : taken_norms(theirs[i])) {
      const auto own = norms.find(name);
      const bool same = own != norms.end() && std::abs(own->second - norm) <= kAlike * norm;
      (same ? alike : other).insert(name);
    }
  }
  for (const std::string& name : other) alike.erase(name);
  return alike;
}

std::string of_other_pass(const Walk& walk, std::uint32_t item) {
  const std::uint32_t ours = walk.gradient_items.find(walk.target_keys.of(item));
  const std::uint32_t theirs =
      walk.golden_gradient_items.find(walk.golden_keys.of(walk.errors.golden_item[item]));
  if (ours == ContentMap::kUnknown || theirs == ContentMap::kUnknown) return {};
  const dump::Item& golden = walk.golden.items[theirs];
  const std::string parameter = pairing::name_in_model(walk.target, walk.item_of(ours));
  if (walk.item_of(ours).state != dump::State::parameters_grad ||
      parameter != pairing::name_in_model(walk.golden, golden))
    return {};
  const std::string_view pass = walk.target.parsed_name(walk.item_of(ours).api).call;
  const std::string_view golden_pass = walk.golden.parsed_name(golden.api).call;
  if (pass == golden_pass) return {};
  return fmt::format("{} is the gradient of {} in parameters_grad.{}, in golden that in parameters_grad.{}",
                     pairing::place_text(walk.target, walk.item_of(item)), parameter, pass, golden_pass);
}

TakenTensors::TakenTensors(const dump::Side& side) : side_(side) {
  for (const dump::OptimizerSettings& optimizer : side.header.training.optimizers)
    norms_.merge(taken_norms(optimizer));
  if (norms_.empty()) return;
  for (std::uint32_t api = behind_backward(side); api < side.apis.size(); ++api) {
    for (const std::uint32_t i : side.apis[api].items()) {
      const dump::Item& item = side.items[i];
      if (item.state != dump::State::input || !item.is_tensor) continue;
      // A scalar has itself in the place of its norm.
      if (const double norm = std::abs(number_of(side, item, dump::kNorm)); norm > 0) items_.emplace(norm, i);
    }
  }
}

double TakenTensors::mean_of(const std::string& parameter, const dump::Item& given) const {
  const auto taken = norms_.find(parameter);
  if (taken == norms_.end()) return NAN;
  const double norm = taken->second;
  const std::uint32_t first = of_norm(norm, side_.text(given.shape));
  return first != pairing::kNone
             ? number_of(side_, side_.items[first], dump::kMean)
             : number_of(side_, given, dump::kMean) * norm / number_of(side_, given, dump::kNorm);
}

std::uint32_t TakenTensors::of_norm(double norm, std::string_view shape) const {
  // The gradient comes first: its magnitude, which Adam computes later, has the same norm.
  std::uint32_t first = pairing::kNone;
  for (auto each = items_.lower_bound(norm * (1 - kSameNorm));
       each != items_.end() && each->first <= norm * (1 + kSameNorm); ++each) {
    if (shape.empty() || side_.text(side_.items[each->second].shape) == shape)
      first = std::min(first, each->second);
  }
  return first;
}

double difference_of_taken(const dump::Side& target, const dump::Side& golden) {
  const auto of_all_steps = [](const dump::Side& side) -> std::optional<std::map<std::string, double>> {
    std::map<std::string, double> norms;
    for (const dump::OptimizerSettings& optimizer : side.header.training.optimizers) {
      std::map<std::string, double> more = taken_norms(optimizer);
      norms.merge(more);
      if (!more.empty()) return std::nullopt;  // which step counts is not known
    }
    return norms;
  };
  const auto ours = of_all_steps(target);
  const auto theirs = of_all_steps(golden);
  if (!ours || !theirs) return kInfinite;
  double largest = 0;
  for (const auto& [name, norm] : *theirs) largest = std::max(largest, norm);
  double apart = 0;
  const auto same = [&](const auto& one, const auto& other) {
    apart = std::max(
        apart, std::abs(one.second - other.second) / std::max(other.second, kTrainedRoundingHalf * largest));
    return one.first == other.first && std::isfinite(apart);
  };
  return largest > 0 && std::equal(ours->begin(), ours->end(), theirs->begin(), theirs->end(), same)
             ? apart
             : kInfinite;
}

double difference_of_unnamed(const dump::Side& target, const dump::Side& golden) {
  const auto norms_of = [](const dump::Side& side, bool all) {
    std::vector<double> norms;
    for (const dump::OptimizerSettings& optimizer : side.header.training.optimizers) {
      for (const dump::OptimizerGroup& group : optimizer.groups) {
        for (std::size_t i = 0; i < std::min(group.parameters.size(), group.gradient_norms.size()); ++i)
          if (all || group.parameters[i].empty()) norms.push_back(std::abs(group.gradient_norms[i]));
      }
    }
    return norms;
  };
  const std::vector<double> ours = norms_of(target, false);
  const std::vector<double> theirs = norms_of(golden, false);
  if (ours.size() != theirs.size()) return kInfinite;
  if (ours.empty()) return 0;
  double least = 0;  // of what a difference is a part
  for (const double norm : norms_of(golden, true))
    least = std::isfinite(norm) ? std::max(least, kTrainedRoundingHalf * norm) : least;
  const TakenTensors our_tensors(target);
  const TakenTensors their_tensors(golden);
  double apart = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (std::isnan(ours[i]) != std::isnan(theirs[i])) return kInfinite;  // one has no gradient
    const double size = std::max(theirs[i], least);
    if (std::isnan(theirs[i]) || size == 0) continue;
    apart = std::max(apart, std::abs(ours[i] - theirs[i]) / size);
    const std::uint32_t item = our_tensors.of_norm(ours[i]);
    const std::uint32_t partner = their_tensors.of_norm(theirs[i]);
    if (item == pairing::kNone || partner == pairing::kNone) continue;
    const auto n = measuring::elements_of(golden.text(golden.items[partner].shape));
    const double mean = number_of(target, target.items[item], dump::kMean);
    const double difference = std::abs(mean - number_of(golden, golden.items[partner], dump::kMean));
    if (!std::isnan(difference))
      apart = std::max(apart, difference * std::sqrt(static_cast<double>(n)) / size);
  }
  return apart;
}

std::vector<TakenGradient> taken_gradients(const dump::Side& target, const dump::Side& golden,
                                           const std::vector<std::uint32_t>& golden_item) {
  std::vector<TakenGradient> taken;
  const auto norms = taken_norms(target, golden);
  if (!norms) return taken;
  const auto& [ours, theirs] = *norms;
  for (const dump::Api& api : target.apis) {
    const dump::EntryName parsed = target.parsed_name(api);
    if (parsed.direction != dump::Direction::parameters_grad) continue;
    for (const std::uint32_t i : api.items()) {
      if (golden_item[i] == pairing::kNone) continue;
      std::string name = pairing::name_in_model(target, target.items[i]);
      const auto our_norm = ours.find(name);
      const auto their_norm = theirs.find(name);
      if (our_norm == ours.end() || their_norm == theirs.end()) continue;
      const double given = number_of(target, target.items[i], dump::kNorm);
      const double golden_given = number_of(golden, golden.items[golden_item[i]], dump::kNorm);
      taken.push_back({std::move(name), i, our_norm->second / given, their_norm->second / golden_given,
                       our_norm->second, their_norm->second});
    }
  }
  return taken;
}

GradientChanges changes_of(const std::vector<TakenGradient>& gradients, const ItemErrors& errors,
                           double threshold) {
  GradientChanges found;
  const double expected = errors.loss_scale ? 1 / errors.loss_scale->factor : 1;
  for (const TakenGradient& gradient : gradients) {
    // Gradients that accumulate are recorded each time: the last one counts.
    found.changed.erase(gradient.parameter);
    found.same.erase(gradient.parameter);
    const float error = errors.e[gradient.item];
    const double apart = std::abs(gradient.target / (expected * gradient.golden) - 1);
    if (std::isnan(error) || error > kNoisy || !std::isfinite(apart)) continue;
    if (apart > kAlike + threshold * error)
      found.changed[gradient.parameter] = gradient;
    else
      found.same.insert(gradient.parameter);
  }
  return found;
}

std::unordered_map<std::uint64_t, double> types_of_users(const dump::Side& target, const dump::Side& golden) {
  std::unordered_map<std::uint64_t, double> types;
  for (const dump::Side* side : {&target, &golden}) {
    for (std::uint32_t api = 0; api < side->apis.size(); ++api) {
      const dump::EntryName name = side->parsed_name(api);
      if (name.direction != dump::Direction::forward || !pairing::takes_parameters(name.operation()))
        continue;
      for (const std::uint32_t i : side->apis[api].items()) {
        const dump::Item& item = side->items[i];
        if (item.state != dump::State::input || !item.is_tensor) continue;
        const auto position = pairing::position_of(*side, item);
        if (!position || !pairing::is_parameter_position(name.operation(), *position)) continue;
        double& u = types[measuring::elements_of(side->text(item.shape))];
        u = std::max(u, coarsest_of(*side, api));
      }
    }
  }
  return types;
}

}  // namespace msprobe::diagnosis
