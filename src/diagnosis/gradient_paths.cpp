// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/gradient_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;
using measuring::kInfinite;
using pairing::kNone;

constexpr std::size_t kNamed = 4;
/// How many calls without a backward may follow the one that has it.
constexpr std::size_t kMostWithoutBackward = 4;
/// How many entries the search for the effect of a cut may cover.
constexpr std::uint32_t kMostSteps = 256;

/// Calls without their direction, of which sentences show the first few.
using Calls = std::vector<std::string>;

std::string who_runs(const Calls& ours, const Calls& theirs) {
  std::string text;
  if (!theirs.empty())
    text =
        fmt::format("golden runs the backward of {}, this run does not", diagnosis::list_of(theirs, kNamed));
  if (!ours.empty()) {
    text += fmt::format("{}{} the backward of {}, golden does not", text.empty() ? "" : "; ",
                        text.empty() ? "this run runs" : "runs", diagnosis::list_of(ours, kNamed));
  }
  return text;
}

}  // namespace

std::uint32_t GradientPaths::forward_of(bool is_target, std::uint32_t backward) {
  const dump::EntryName name =
      is_target ? walk_.target.parsed_name(backward) : walk_.golden.parsed_name(backward);
  if (name.direction != Direction::backward) return kNone;
  const std::string forward = name_in(name, "forward");
  return is_target ? errors_.entry_named(forward) : errors_.golden_named(forward);
}

std::uint32_t GradientPaths::backward_of(std::uint32_t forward) const {
  return errors_.entry_named(name_in(walk_.target.parsed_name(forward), "backward"));
}

/// The side that alone recorded gradients for a pair of forward entries.
GradientPaths::Alone GradientPaths::backward_alone(std::uint32_t forward) {
  if (!alignment_.has_golden(forward)) return Alone::neither;
  const dump::EntryName ours = walk_.target.parsed_name(forward);
  const dump::EntryName theirs = walk_.golden.parsed_name(alignment_.golden_of[forward]);
  Alone alone = Alone::neither;
  for (const std::string_view direction : {"backward", "parameters_grad"}) {
    const std::uint32_t here = errors_.entry_named(name_in(ours, direction));
    const std::uint32_t there = errors_.golden_named(name_in(theirs, direction));
    // A side that recomputes the call runs the backward of that one.
    const bool again = (here != kNone && alignment_.has_golden(here)) ||
                       (there != kNone && alignment_.target_of[there] != kNone);
    if ((here == kNone) != (there == kNone) && !again) return here != kNone ? Alone::target : Alone::golden;
    if (here != kNone || there != kNone) alone = Alone::both;
  }
  return alone;
}

/// Whether one side alone runs the backward of a call; of a call without backward, as of one that returns its
/// input, that of the call before it.
bool GradientPaths::lacks_backward(std::uint32_t forward) {
  for (std::size_t steps = 0; steps < kMostWithoutBackward && forward != kNone; ++steps) {
    const Alone alone = backward_alone(forward);
    if (alone != Alone::neither) return is_one_sided(alone);
    forward = call_before(forward);
  }
  return false;
}

/// The call that made an input of a call, at most kMostWithoutBackward calls before it; or kNone. The content
/// alone would not show it: a call that returns its input makes the same.
std::uint32_t GradientPaths::call_before(std::uint32_t forward) const {
  const auto taken = contents_in(walk_.target_keys, forward, State::input);
  for (std::uint32_t api = forward; api-- > 0 && forward - api <= kMostWithoutBackward;) {
    if (walk_.compound[api] || walk_.target.parsed_name(api).direction != Direction::forward) continue;
    if (has_one_of(walk_.target_keys, api, State::output, taken)) return api;
  }
  return kNone;
}

/// Keeps a tensor through which gradients flow on one side alone. It has no effect on outputs, but on
/// gradients. `given`: the sentence that says on which side.
void GradientPaths::await(const EntryPair& entry, Finding found, const std::string& given) {
  bool handed_on = entry.touched;
  bool lacks = is_one_sided(backward_alone(entry.target));
  if (walk_.construct != nullptr) {
    const std::uint32_t around =
        errors_.entry_named(walk_.construct->parent(walk_.target_name(entry.target)));
    lacks = lacks || (around != kNone && is_one_sided(backward_alone(around)));
  }
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::input || !item.is_tensor || errors_.golden_item[i] == kNone) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    if (from != ContentMap::kUnknown) {
      const std::uint32_t maker = target_.items[from].api;
      handed_on = handed_on || cut_.contains(maker);
      lacks = lacks || lacks_backward(maker);
    } else if (item.requires_grad != golden_.items[errors_.golden_item[i]].requires_grad) {
      handed_on = handed_on || !cut_.empty();
    }
  }
  cut_.insert(entry.target);
  if (handed_on || !lacks || cuts_.size() >= kMostFindings || walk_.options.without.contains(Rule::structure))
    return;
  found.text = given;
  walk_.name_places(found, entry.target, entry.golden);
  cuts_.emplace_back(std::move(found), walk_.before);
}

/// Names the entries up to `forward`, the nearest first, that have gradients on one side alone.
std::string GradientPaths::paths_of_one_side(std::uint32_t forward) {
  Calls ours;
  Calls theirs;
  const std::uint32_t steps = std::min(forward + 1, kMostSteps);
  for (std::uint32_t api = forward; forward - api < steps; --api) {
    const dump::EntryName name = walk_.target.parsed_name(api);
    if (name.direction == Direction::forward && !walk_.compound[api]) {
      const Alone alone = backward_alone(api);
      if (alone == Alone::target) ours.push_back(call_of(name));
      if (alone == Alone::golden) theirs.push_back(call_of(name));
      if (alone == Alone::both && api != forward) break;
    }
    if (api == 0) break;
  }
  return who_runs(ours, theirs);
}

/// Called once gradients are reached: each cut becomes evidence, placed before the differences that it
/// causes.
void GradientPaths::show() {
  for (auto& [found, before] : std::exchange(cuts_, {})) {
    const std::string paths = paths_of_one_side(found.target_api);
    found.text += "; " + (paths.empty() ? "gradients pass through it on one side only" : paths);
    walk_.confirm(std::move(found), before);
  }
}

Finding GradientPaths::missing(const std::vector<std::uint32_t>& forwards, const Finding& effect,
                               double error) {
  Calls ours;
  Calls theirs;
  std::uint32_t first_ours = kNone;
  std::uint32_t first_theirs = kNone;
  for (const std::uint32_t api : forwards) {
    const bool here = backward_alone(api) == Alone::target;
    const dump::EntryName name =
        here ? walk_.target.parsed_name(api) : walk_.golden.parsed_name(alignment_.golden_of[api]);
    (here ? ours : theirs).push_back(call_of(name));
    const std::string backward = name_in(name, "backward");
    if (here && first_ours == kNone) first_ours = errors_.entry_named(backward);
    if (!here && first_theirs == kNone) first_theirs = errors_.golden_named(backward);
  }
  Finding found = effect;
  found.kind = ours.empty() ? Kind::removed : Kind::added;
  found.rule = Rule::structure;
  found.excess = kInfinite;
  found.concerned = forwards.size();
  found.text.clear();
  if (first_ours == kNone && first_theirs == kNone) return found;
  walk_.name_places(found, first_ours, first_theirs);
  found.text = fmt::format("{}; error {} at {}, {} before", who_runs(ours, theirs), error_text(error),
                           effect.entry, error_text(walk_.clean));
  found.side = "the code differs, not a kernel";
  return found;
}

/// Reports backward entries that one side alone has, just before a gradient that arrives with an error. Both
/// sides have their forward entries.
void GradientPaths::missing_backward(EntryPair& entry, double error, double before) {
  Calls ours;
  Calls theirs;
  std::uint32_t first_ours = kNone;
  std::uint32_t first_theirs = kNone;
  const auto look = [](const Side& side, std::uint32_t api, auto&& has_partner, auto&& forward_is_paired,
                       Calls& names, std::uint32_t& first) {
    for (std::uint32_t steps = 0; api-- > 0 && steps < kMostSteps; ++steps) {
      const dump::EntryName name = side.parsed_name(api);
      if (name.direction == Direction::parameters_grad) continue;
      if (name.direction != Direction::backward || has_partner(api)) return;
      if (!forward_is_paired(name_in(name, "forward"))) return;
      names.push_back(call_of(name));
      first = api;
    }
  };
  look(
      golden_, entry.golden, [&](std::uint32_t api) { return alignment_.target_of[api] != kNone; },
      [&](const std::string& forward) {
        const std::uint32_t api = errors_.golden_named(forward);
        return api != kNone && alignment_.target_of[api] != kNone;
      },
      theirs, first_theirs);
  look(
      target_, entry.target, [&](std::uint32_t api) { return alignment_.has_golden(api); },
      [&](const std::string& forward) {
        const std::uint32_t api = errors_.entry_named(forward);
        return api != kNone && alignment_.has_golden(api);
      },
      ours, first_ours);
  if (ours.empty() && theirs.empty()) return;
  Finding found =
      walk_.finding(entry, ours.empty() ? Kind::removed : Kind::added, Rule::structure, kInfinite);
  found.confidence = Confidence::certain;
  found.concerned = ours.size() + theirs.size();
  walk_.name_places(found, first_ours, first_theirs);
  found.text = fmt::format("{}; error {} at {}, {} before", who_runs(ours, theirs), error_text(error),
                           walk_.target_name(entry.target), error_text(before));
  found.side = "the code differs, not a kernel";
  walk_.keep(std::move(found), before);
  entry.touched = true;
}

}  // namespace msprobe::diagnosis
