// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/parameter_gradients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "diagnosis/limits.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/updates.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::State;
using pairing::kNone;
using pairing::name_in_model;

/// The gradients of a parameter, each content once.
using Gradients = std::vector<Content>;

/// The gradients by the content of their parameter. Each rank is looked at separately, because stages of a
/// pipeline use the same names for different parameters.
std::map<std::uint32_t, Gradients> gradients_of(const Implementation& side) {
  std::map<std::uint32_t, Gradients> gradients;
  for (std::uint32_t rank = 0; rank < side.flow.ranks(); ++rank) {
    std::map<std::string, std::uint32_t> content_of;  // by the parameter's name
    for (std::uint32_t i = 0; i < side.side.items.size(); ++i) {
      const std::uint32_t content = side.flow.content_of(i, rank);
      if (side.side.items[i].state != State::parameters || content == kNone) continue;
      content_of.emplace(name_in_model(side.side, side.side.items[i]), content);
      gradients[content];
    }
    for (std::uint32_t i = 0; i < side.side.items.size(); ++i) {
      if (side.side.items[i].state != State::parameters_grad) continue;
      const auto content = content_of.find(name_in_model(side.side, side.side.items[i]));
      const auto gradient = side.flow.described(i, rank);
      if (content == content_of.end() || !gradient) continue;
      // Modules that share a parameter have one gradient, and so have ranks with copies.
      Gradients& known = gradients[content->second];
      if (std::none_of(known.begin(), known.end(),
                       [&](const Content& each) { return is_same(each, *gradient); }))
        known.push_back(*gradient);
    }
  }
  return gradients;
}

/// The only gradients of several parameters joined into one; nothing if a parameter has no gradient or
/// several.
std::optional<Content> joined_gradient(const std::vector<Gradients>& each) {
  std::optional<Content> all;
  for (const Gradients& gradients : each) {
    if (gradients.size() != 1) return std::nullopt;
    all = all ? joined(*all, gradients.front()) : gradients.front();
  }
  return all;
}

/// The gradients of a group's parameters, or of the parts of them that ranks hold; empty if one is not known.
std::vector<Gradients> of_all(const Implementation& side, const std::map<std::uint32_t, Gradients>& gradients,
                              const std::vector<std::uint32_t>& contents) {
  std::vector<Gradients> found;
  for (const std::uint32_t content : contents) {
    const auto own = gradients.find(content);
    if (own != gradients.end()) {
      found.push_back(own->second);
      continue;
    }
    const std::size_t before = found.size();
    for (const Joint& joint : side.flow.joints()) {
      const auto part = joint.whole == content ? gradients.find(joint.part) : gradients.end();
      if (part != gradients.end()) found.push_back(part->second);
    }
    if (found.size() == before) return {};
  }
  return found;
}

/// How the gradients of a group of parameters differ, in words; empty if they may be the same. `ours` and
/// `theirs` have an element for each parameter of the group.
std::string other_gradient(const std::vector<Gradients>& ours, const std::vector<Gradients>& theirs,
                           bool whole, double least_size, double most) {
  if (whole && ours.size() == 1 && theirs.size() == 1) {
    const std::size_t here = ours[0].size();
    const std::size_t there = theirs[0].size();
    if (here == 0 && there > 0) return "has no gradient, golden's has one";
    if (here > 0 && there == 0) return "has a gradient, golden's has none";
    if (here != there)
      return fmt::format("has {} gradients here, {} in golden: only one side ties weights", here, there);
  }
  const auto gradient = joined_gradient(ours);
  const auto golden = joined_gradient(theirs);
  if (!gradient || !golden || !golden->is_finite()) return {};
  // A gradient that cancels, such as that of the bias of attention's keys, is nothing but rounding.
  const double size = golden->norm / std::sqrt(static_cast<double>(golden->elements));
  const double error = error_between(*gradient, *golden);
  if (!(size >= least_size) || !(error > most)) return {};
  return fmt::format("has a different gradient: error {}", error_text(error));
}

}  // namespace

ParameterGradients compare_parameter_gradients(const Implementation& ours, const Implementation& theirs,
                                               const ParameterMap& parameters, double drift) {
  ParameterGradients met;
  const auto gradients = gradients_of(ours);
  const auto golden_gradients = gradients_of(theirs);
  std::vector<double> sizes;
  for (const auto& [content, own] : golden_gradients) {
    for (const Content& each : own)
      sizes.push_back(each.norm / std::sqrt(static_cast<double>(each.elements)));
  }
  const bool any =
      std::any_of(gradients.begin(), gradients.end(), [](const auto& each) { return !each.second.empty(); });
  const bool once = ours.flow.micro_batches() == 1 && theirs.flow.micro_batches() == 1;
  if (sizes.empty() || !any || !once) return met;
  const double least_size = kAlike * median_of(std::move(sizes));
  const bool half = is_half(std::max(ours.coarsest(), theirs.coarsest()));
  const double most = kFew * ((half ? kTrainedRoundingHalf : kTrainedRounding) + drift);
  const bool whole = ours.flow.ranks() == 1 && theirs.flow.ranks() == 1;
  for (const ParameterGroup& group : parameters.groups) {
    const auto here = of_all(ours, gradients, group.ours);
    const auto there = of_all(theirs, golden_gradients, group.theirs);
    if (here.empty() || there.empty()) continue;
    const bool known = joined_gradient(here) && joined_gradient(there);
    ++(known ? met.compared : met.unknown);
    const std::string found = other_gradient(here, there, whole, least_size, most);
    if (found.empty() || (met.other != kNone && group.ours.front() < met.other)) continue;
    met.other = group.ours.front();
    met.said = found;
  }
  return met;
}

}  // namespace msprobe::diagnosis
