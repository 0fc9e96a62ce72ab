// SPDX-License-Identifier: Apache-2.0
#include "pairing/moved_terms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pairing/operations.hpp"

namespace msprobe::pairing {
namespace {

using dump::Direction;
using dump::EntryName;
using dump::Item;
using dump::Side;
using dump::State;

constexpr double kOther = std::numeric_limits<double>::infinity();
/// A tensor is another call's if it differs by no more than this, and clearly from that of the call in its
/// place. Chosen, not measured: runs have drifted apart by less in a few steps.
constexpr double kSame = 1e-3;
/// How many calls of the same operation may be between the two places.
constexpr std::size_t kMostBetween = 16;

/// The only tensor among the inputs of a call; kNone where it takes none or several.
std::uint32_t only_tensor(const Side& side, std::uint32_t api) {
  std::uint32_t only = kNone;
  for (const std::uint32_t i : side.apis[api].items()) {
    if (side.items[i].state != State::input || !side.items[i].is_tensor) continue;
    if (only != kNone) return kNone;
    only = i;
  }
  return only;
}

class MovedTerms {
 public:
  MovedTerms(const Side& target, const Side& golden, Alignment& alignment)
      : target_(target), golden_(golden), alignment_(alignment) {}

  bool run(const std::function<bool(std::uint32_t)>& counts) {
    std::unordered_map<std::string, std::vector<std::uint32_t>> golden_terms;
    collect(
        golden_, [](std::uint32_t) { return true; }, golden_terms);
    if (golden_terms.empty()) return false;
    std::unordered_map<std::string, std::vector<std::uint32_t>> terms;
    collect(target_, counts, terms);
    for (const auto& [kind, ours] : terms) {
      const auto theirs = golden_terms.find(kind);
      if (theirs != golden_terms.end()) move(ours, theirs->second);
    }
    return moved_;
  }

 private:
  /// Terms by their operation and shape, in order.
  template <typename Counts>
  static void collect(const Side& side, const Counts& counts,
                      std::unordered_map<std::string, std::vector<std::uint32_t>>& terms) {
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      const EntryName name = side.parsed_name(api);
      if (name.direction != Direction::forward || name.is_module || !is_elementwise(name.operation()) ||
          is_in_place(name.operation()))
        continue;
      const std::uint32_t tensor = only_tensor(side, api);
      if (tensor == kNone || !counts(api)) continue;
      std::string kind(name.base);
      kind.append("\n").append(side.text(side.items[tensor].dtype));
      kind.append(side.text(side.items[tensor].shape));
      terms[kind].push_back(api);
    }
  }

  /// How far the inputs of two calls are apart; kOther where they cannot be the same.
  double apart(std::uint32_t target_api, std::uint32_t golden_api) const {
    const dump::Api& ours = target_.apis[target_api];
    const dump::Api& theirs = golden_.apis[golden_api];
    double most = 0;
    std::uint32_t g = 0;
    for (std::uint32_t t = 0; t < ours.count; ++t, ++g) {
      const Item& a = target_.items[ours.first + t];
      if (a.state != State::input) break;
      if (g == theirs.count) return kOther;
      const Item& b = golden_.items[theirs.first + g];
      if (b.state != State::input || a.is_tensor != b.is_tensor) return kOther;
      if (!a.is_tensor) {
        if (dump::to_text(a.statistics[dump::kMax], target_.pool) !=
            dump::to_text(b.statistics[dump::kMax], golden_.pool))
          return kOther;
        continue;
      }
      for (const dump::Statistic which : {dump::kMax, dump::kMin, dump::kNorm}) {
        const dump::Classified x = dump::classify(a.statistics[which], target_.pool);
        const dump::Classified y = dump::classify(b.statistics[which], golden_.pool);
        if (x.type != dump::ValueClass::number || y.type != dump::ValueClass::number) return kOther;
        const double larger = std::max(std::abs(x.number), std::abs(y.number));
        if (larger > 0) most = std::max(most, std::abs(x.number - y.number) / larger);
      }
    }
    return most;
  }

  /// Whether another call is the partner by its contents, and not the one at hand.
  static bool is_better(double other, double at_hand) {
    return other <= kSame && at_hand > kClearly * std::max(other, kLeast);
  }

  double apart_from_partner(std::uint32_t target_api) const {
    const std::uint32_t partner = alignment_.golden_of[target_api];
    return partner == kNone ? kOther : apart(target_api, partner);
  }

  void move(const std::vector<std::uint32_t>& ours, const std::vector<std::uint32_t>& theirs) {
    std::size_t place = 0;  // in golden, of the last partner
    for (const std::uint32_t api : ours) {
      const std::uint32_t partner = alignment_.golden_of[api];
      const auto found = std::lower_bound(theirs.begin(), theirs.end(), partner);
      if (partner != kNone && found != theirs.end() && *found == partner)
        place = static_cast<std::size_t>(found - theirs.begin());
      const double at_hand = apart_from_partner(api);
      if (partner == kNone || at_hand <= kLeast) continue;
      const std::uint32_t other = best_near(api, at_hand, theirs, place);
      if (other != kNone) exchange(api, other);
    }
  }

  /// The call near a place of golden that takes the same; kNone where several do, or none.
  std::uint32_t best_near(std::uint32_t api, double at_hand, const std::vector<std::uint32_t>& theirs,
                          std::size_t place) const {
    const std::size_t first = place < kMostBetween ? 0 : place - kMostBetween;
    const std::size_t last = std::min(theirs.size(), place + kMostBetween + 1);
    std::uint32_t best = kNone;
    for (std::size_t i = first; i < last; ++i) {
      const double other = apart(api, theirs[i]);
      if (!is_better(other, at_hand)) continue;
      // It already has the partner that takes the same.
      const std::uint32_t taken = alignment_.target_of[theirs[i]];
      if (taken != kNone && !is_better(other, apart_from_partner(taken))) continue;
      if (best != kNone) return kNone;
      best = theirs[i];
    }
    return best;
  }

  /// Pairs a call with another one; their partners so far become partners.
  void exchange(std::uint32_t api, std::uint32_t golden) {
    moved_ = true;
    const std::uint32_t left = alignment_.golden_of[api];
    const std::uint32_t taken = alignment_.target_of[golden];
    alignment_.golden_of[api] = golden;
    alignment_.target_of[golden] = api;
    alignment_.target_of[left] = taken;
    if (taken != kNone) alignment_.golden_of[taken] = left;
  }

  const Side& target_;
  const Side& golden_;
  Alignment& alignment_;
  bool moved_ = false;
};

}  // namespace

bool pair_moved_terms(const Side& target, const Side& golden,
                      const std::function<bool(std::uint32_t)>& counts, Alignment& alignment) {
  return MovedTerms(target, golden, alignment).run(counts);
}

}  // namespace msprobe::pairing
