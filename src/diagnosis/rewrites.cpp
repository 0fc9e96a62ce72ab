// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rewrites.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "diagnosis/structure.hpp"
#include "dump/side.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Nature;
using dump::Side;
using dump::State;
using measuring::elements_of;
using measuring::kSingleRoundoff;
using measuring::number_of;
using measuring::unit_roundoff;
using pairing::kNone;

bool is_floating(const Side& side, const Item& item) {
  return item.is_tensor && unit_roundoff(side.text(item.dtype)) > 0;
}

bool is_masked(const Side& side, const Item& item) {
  return is_floating(side, item) && std::abs(number_of(side, item, dump::kMin)) >= kMask;
}

/// The share of an input in an entry's output, where others are added to it or joined with it: its error
/// shrinks by that share as well.
double share_of(const Side& side, std::uint32_t api, std::string_view operation, std::uint32_t input) {
  if (pairing::is_product(operation) ||
      (pairing::is_elementwise(operation) && pairing::nature_of(operation) != Nature::sum))
    return 1;
  double out = 0;
  for (const std::uint32_t i : side.apis[api].items()) {
    if (side.items[i].state == State::output && side.items[i].is_tensor)
      out = std::max(out, std::abs(number_of(side, side.items[i], dump::kNorm)));
  }
  const double share = std::abs(number_of(side, side.items[input], dump::kNorm)) / out;
  return std::isfinite(share) ? std::min(share, 1.0) : 1;
}

}  // namespace

/// The limit of an entry's error: an error larger than all before it would be evidence.
double Rewrites::limit_of(std::uint32_t api) const {
  const double u = std::max(static_cast<double>(errors_.u[api]), kSingleRoundoff);
  return kMargin * (seen() + u);
}

/// The largest error that forward calls before the entry may have.
double Rewrites::seen() const {
  return std::max({walk_.forward_error(), largest_.updated, history_.noise});
}

/// Whether an entry has an error, and no mask on one side alone, which would hide other differences from
/// statistics.
bool Rewrites::is_visible(const EntryPair& entry) const {
  const double limit = limit_of(entry.target);
  bool visible = false;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (!target_.items[i].is_tensor || errors_.golden_item[i] == kNone) continue;
    if (is_masked(target_, target_.items[i]) != is_masked(golden_, golden_.items[errors_.golden_item[i]]))
      return false;
    visible = visible || walk_.e_of(i) > limit;
  }
  return visible;
}

/// Whether no recorded entry made the item, so that it is a parameter or data. Then it is wrong whatever is
/// computed from it.
bool Rewrites::is_own_input(std::uint32_t item) const {
  return walk_.target_flow.find(walk_.target_keys.of(item)) == ContentMap::kUnknown &&
         walk_.golden_flow.find(walk_.golden_keys.of(errors_.golden_item[item])) == ContentMap::kUnknown;
}

/// Whether the entry has a wrong input or another argument, or the calls after it differ. Only then may both
/// sides compute the same in different ways; otherwise the error is a kernel's, which may just fade.
bool Rewrites::is_called_otherwise(const EntryPair& entry, const Cone& cone, const Cone& golden_cone) const {
  const double limit = limit_of(entry.target);
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (target_.items[i].state == State::input && errors_.golden_item[i] != kNone && walk_.e_of(i) > limit)
      return true;
  }
  const auto alone = [](const std::vector<std::uint32_t>& entries,
                        const std::vector<std::uint32_t>& partners) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](std::uint32_t api) { return partners[api] == kNone; });
  };
  if (alone(golden_cone.entries, alignment_.target_of) || alone(cone.entries, alignment_.golden_of))
    return true;
  const CalledOtherwise called =
      called_otherwise(target_, entry.target, golden_, entry.golden, errors_.golden_item, 0, nullptr,
                       errors_.scale_at(entry.target));
  return called.first && called.first->kind == Kind::argument;
}

Rewrites::Cone Rewrites::cone_of(const ContentKeys& keys, std::uint32_t api) const {
  constexpr unsigned kMostInSight = 64;
  const Side& side = keys.side();
  const std::vector<bool>& compound = &side == &target_ ? walk_.compound : walk_.compound_golden;
  Cone cone;
  std::unordered_set<std::uint64_t> contents;
  const auto put = [&](std::uint32_t entry) {
    for (const std::uint32_t i : side.apis[entry].items()) {
      if (side.items[i].state != State::output || !is_floating(side, side.items[i])) continue;
      cone.items.push_back(i);
      if (keys.of(i) != 0) contents.insert(keys.of(i));
    }
  };
  put(api);
  unsigned seen = 0;
  for (std::uint32_t next = api + 1; next < side.apis.size() && seen < kMostInSight; ++next) {
    const dump::EntryName name = side.parsed_name(next);
    if (name.direction != Direction::forward) break;
    if (compound[next]) continue;
    ++seen;
    if (!has_one_of(keys, next, State::input, contents)) continue;
    cone.entries.push_back(next);
    put(next);
  }
  return cone;
}

/// Whether two items are the same. `error`: the entry's error at this place, if it is an error; a norm shows
/// half the square of errors in all directions.
bool Rewrites::same(std::uint32_t target_item, std::uint32_t golden_item, double error) const {
  if (walk_.target_keys.of(target_item) == 0) return false;
  // The norm of a mask shows nothing else.
  if (is_masked(golden_, golden_.items[golden_item])) return false;
  const Item& ours = target_.items[target_item];
  const Item& theirs = golden_.items[golden_item];
  if (elements_of(target_.text(ours.shape)) != elements_of(golden_.text(theirs.shape))) return false;
  const measuring::Measure apart = errors_.by_statistics_of(target_item, golden_item);
  const double u =
      std::max(unit_roundoff(target_.text(ours.dtype)), unit_roundoff(golden_.text(theirs.dtype)));
  const double own = kFew * std::max(u, kSingleRoundoff);
  const double rounding = kMargin * seen() + own;
  const double size = std::abs(number_of(golden_, theirs, dump::kNorm)) /
                      std::sqrt(static_cast<double>(elements_of(golden_.text(theirs.shape))));
  // Zeros are equal whatever made them.
  if (!(size > 0)) return false;
  const double shift =
      std::abs(number_of(target_, ours, dump::kMean) - number_of(golden_, theirs, dump::kMean));
  if (shift > rounding * size) return false;
  // The norm of a single number is the number, so that it shows all of its error.
  const double shown =
      elements_of(golden_.text(theirs.shape)) == 1 ? std::min(error, 1.0) : std::min(error * error, 1.0) / 2;
  // A norm averages the roundings of its elements.
  const double of_norm =
      kMargin * seen() + (static_cast<double>(apart.n) < kFar ? own : std::max(u, kFew * kSingleRoundoff));
  if (!apart.known || apart.blind || apart.partial || apart.e > rounding || apart.b > of_norm) return false;
  // Another way of the code is one in every step, however large errors have grown since.
  return shown > kMany * rounding || history_.rewritten.contains(way_of(target_item, golden_item));
}

/// The names of two items where ways of the entry at hand meet, which are those of the same calls in every
/// step.
std::string Rewrites::way_of(std::uint32_t target_item, std::uint32_t golden_item) const {
  return fmt::format("{}\n{}\n{}", walk_.target_name(walk_.at), target_.name(target_.items[target_item]),
                     golden_.name(golden_.items[golden_item]));
}

/// Whether every value that is computed from the entry's outputs leads to a value that golden has as well.
bool Rewrites::meet(const EntryPair& entry, const Cone& cone, const Cone& golden_cone) {
  std::vector<Open> open;
  std::vector<std::string> ways;
  std::unordered_map<std::uint32_t, Rewritten> group;
  const auto put = [&](std::uint32_t api, double error) {
    bool meets = true;
    // The norm of what is normalised is the same, whatever went in.
    if (pairing::may_normalise(walk_.target.parsed_name(api).operation())) error = 0;
    const std::uint32_t partner = alignment_.golden_of[api];
    for (const std::uint32_t i : target_.apis[api].items()) {
      const Item& item = target_.items[i];
      if (item.state != State::output || !item.is_tensor) continue;
      if (!is_floating(target_, item)) return false;
      const auto met = std::find_if(golden_cone.items.begin(), golden_cone.items.end(),
                                    [&](std::uint32_t other) { return same(i, other, error); });
      if (met == golden_cone.items.end()) {
        open.push_back({i, error, false});
        meets = false;
      } else {
        ways.push_back(way_of(i, *met));
        meets = meets && golden_.items[*met].api == partner;
      }
    }
    group[api] = {meets};
    return true;
  };
  double largest = 0;
  for (const std::uint32_t i : target_.apis[entry.target].items())
    largest = std::max(largest, std::min(walk_.e_of(i), 1.0));
  if (!put(entry.target, largest)) return false;
  const auto is_closed = [&] {
    return std::all_of(open.begin(), open.end(), [](const Open& each) { return each.taken; });
  };
  for (const std::uint32_t next : cone.entries) {
    // A later call that takes such a value is examined in its turn.
    if (is_closed()) break;
    const std::string_view operation = walk_.target.parsed_name(next).operation();
    bool takes = false;
    double error = 0;
    for (Open& each : open) {
      for (const std::uint32_t i : target_.apis[next].items()) {
        if (target_.items[i].state != State::input || walk_.target_keys.of(i) == 0) continue;
        if (walk_.target_keys.of(i) != walk_.target_keys.of(each.item)) continue;
        each.taken = takes = true;
        error = std::max(error, each.error * share_of(target_, next, operation, i));
      }
    }
    if (!takes) continue;
    if (!put(next, error)) return false;
  }
  if (ways.empty() || !is_closed()) return false;
  for (const Open& each : open) between_.insert(each.item);
  rewritten_.insert(group.begin(), group.end());
  history_.rewritten.insert(ways.begin(), ways.end());
  return true;
}

/// Whether an entry's output of another size is cut to golden's before a call takes it, as the classes of a
/// one-hot tensor are. The calls that take it on one side then take the same on the other.
bool Rewrites::is_cut_to_same(const EntryPair& entry) {
  constexpr unsigned kMostInSight = 64;
  std::vector<std::uint32_t> ours;
  std::vector<std::uint32_t> theirs;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const std::uint32_t partner = errors_.golden_item[i];
    if (!target_.items[i].is_tensor || partner == kNone || walk_.e_of(i) == 0) continue;
    const bool resized = elements_of(target_.text(target_.items[i].shape)) !=
                         elements_of(golden_.text(golden_.items[partner].shape));
    if (target_.items[i].state != State::output || !resized) return false;
    ours.push_back(i);
    theirs.push_back(partner);
  }
  // A cast to a floating type is not recorded and rounds the norm.
  const auto is_one_of = [](const Side& side, const std::vector<std::uint32_t>& items, std::uint32_t item) {
    return std::any_of(items.begin(), items.end(), [&](std::uint32_t each) {
      const auto same = [&](dump::Statistic which) {
        const double number = number_of(side, side.items[each], which);
        return std::abs(number_of(side, side.items[item], which) - number) <=
               kFew * kSingleRoundoff * std::abs(number);
      };
      return elements_of(side.text(side.items[each].shape)) ==
                 elements_of(side.text(side.items[item].shape)) &&
             same(dump::kMax) && same(dump::kMin) && same(dump::kNorm);
    });
  };
  bool any = false;
  unsigned seen = 0;
  for (std::uint32_t next = entry.target + 1; next < target_.apis.size() && seen < kMostInSight; ++next) {
    if (walk_.target.parsed_name(next).direction != Direction::forward) break;
    if (walk_.compound[next] || !alignment_.has_golden(next)) continue;
    ++seen;
    errors_.measure(next);
    for (const std::uint32_t i : target_.apis[next].items()) {
      const std::uint32_t partner = errors_.golden_item[i];
      if (target_.items[i].state != State::input || !target_.items[i].is_tensor || partner == kNone) continue;
      const bool here = is_one_of(target_, ours, i);
      const bool there = is_one_of(golden_, theirs, partner);
      if (!here && !there) continue;
      if (here == there || std::isnan(errors_.e[i]) || walk_.e_of(i) > limit_of(next)) return false;
      any = true;
    }
  }
  return any;
}

void Rewrites::leave_out(std::uint32_t api, const Rewritten& how, double limit) {
  for (const std::uint32_t i : target_.apis[api].items()) {
    if (std::isnan(errors_.e[i]) || !(walk_.e_of(i) > limit)) continue;
    if (target_.items[i].state == State::output && how.meets) continue;
    walk_.leave_out_item(i);
  }
}

void Rewrites::examine(EntryPair& entry) {
  if (walk_.any_evidence || history_.evidence || walk_.flipped || walk_.other_operations || entry.optimizer)
    return;
  if (entry.compound) {
    const auto among = [&](std::uint32_t i) {
      if (errors_.golden_item[i] == kNone || !(walk_.e_of(i) > 0)) return false;
      const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
      return between_.contains(from) ||
             golden_between_.contains(walk_.golden_flow.find(walk_.golden_keys.of(errors_.golden_item[i])));
    };
    if (between_.empty()) return;
    for (const std::uint32_t i : target_.apis[entry.target].items()) {
      if (!among(i)) continue;
      walk_.leave_out_item(i);
      rewritten_[entry.target] = {};
    }
    return;
  }
  const double limit = limit_of(entry.target);
  if (const auto known = rewritten_.find(entry.target); known != rewritten_.end()) {
    entry.rewritten = true;
    leave_out(entry.target, known->second, limit);
    return;
  }
  if (entry.communication || entry.nature == Nature::random || !is_visible(entry)) return;
  if (is_cut_to_same(entry)) {
    entry.rewritten = true;
    rewritten_[entry.target] = {};
    leave_out(entry.target, {}, limit);
    return;
  }
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (target_.items[i].state == State::input && errors_.golden_item[i] != kNone && walk_.e_of(i) > limit &&
        is_own_input(i))
      return;
  }
  const Cone cone = cone_of(walk_.target_keys, entry.target);
  const Cone golden_cone = cone_of(walk_.golden_keys, entry.golden);
  if (!is_called_otherwise(entry, cone, golden_cone) || !meet(entry, cone, golden_cone)) return;
  golden_between_.insert(golden_cone.items.begin(), golden_cone.items.end());
  entry.rewritten = true;
  leave_out(entry.target, rewritten_.at(entry.target), limit);
}

void Rewrites::examine_backward(std::uint32_t target_api, std::uint32_t forward) {
  const auto known = rewritten_.find(forward);
  if (known == rewritten_.end()) return;
  for (const std::uint32_t i : target_.apis[target_api].items()) {
    if (known->second.meets && target_.items[i].state == State::input) continue;
    const double u = std::max(static_cast<double>(errors_.u[target_api]), kSingleRoundoff);
    if (walk_.e_of(i) > kMargin * u) walk_.leave_out_item(i);
  }
}

}  // namespace msprobe::diagnosis
