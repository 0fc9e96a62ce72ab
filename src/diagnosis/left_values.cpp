// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/left_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "dump/side.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Side;
using dump::State;
using pairing::kNone;

/// Calls that change one tensor in place, each of which takes what the one before left.
struct InPlaceCalls {
  std::uint32_t from = kNone;         // the tensor before: its item
  std::uint32_t left = kNone;         // and after
  std::vector<std::uint32_t> others;  // the other tensors that the calls take
  bool is_known() const { return left != kNone; }
};

class InPlaceSide {
 public:
  InPlaceSide(const Side& side, const ContentKeys& keys, const std::vector<std::uint32_t>& partners)
      : side_(side), keys_(keys), partners_(partners) {}

  /// The chain that begins with a call; unknown if the call changes nothing in place, or if a call of the
  /// chain has a partner.
  InPlaceCalls from(std::uint32_t api) const {
    constexpr std::size_t kNearby = 16;
    InPlaceCalls chain;
    const std::size_t end = std::min(side_.apis.size(), std::size_t{api} + kNearby);
    for (std::uint32_t next = api; next < end; ++next) {
      const dump::EntryName name = side_.parsed_name(next);
      if (name.is_module || name.direction != dump::Direction::forward ||
          !pairing::is_in_place(name.operation()))
        continue;
      const std::uint32_t taken = first(next, State::input);
      if (taken == kNone || keys_.of(taken) == 0 ||
          (chain.is_known() && keys_.of(taken) != keys_.of(chain.left)))
        continue;
      if (partners_[next] != kNone) return {};
      if (!chain.is_known()) chain.from = taken;
      chain.left = first(next, State::output);
      if (chain.left == kNone) return {};
      for (const std::uint32_t i : side_.apis[next].items()) {
        if (side_.items[i].state == State::input && side_.items[i].is_tensor && i != taken)
          chain.others.push_back(i);
      }
    }
    return chain;
  }

 private:
  std::uint32_t first(std::uint32_t api, State state) const {
    for (const std::uint32_t i : side_.apis[api].items()) {
      if (side_.items[i].state == state && side_.items[i].is_tensor) return i;
    }
    return kNone;
  }

  const Side& side_;
  const ContentKeys& keys_;
  const std::vector<std::uint32_t>& partners_;
};

LeftValue left_by(const Walk& walk, const InPlaceCalls& ours, const InPlaceCalls& theirs) {
  if (ours.others.size() != theirs.others.size()) return {};
  const auto error = [&](std::uint32_t item, std::uint32_t partner) {
    const dump::Item& target = walk.target.items[item];
    const dump::Item& golden = walk.golden.items[partner];
    const auto measured =
        measuring::measure(walk.target, target, walk.golden, golden,
                           walk.history.precision->of(walk.target, target, walk.golden, golden));
    return measured.known && walk.target.text(target.shape) == walk.golden.text(golden.shape) ? measured.e
                                                                                              : NAN;
  };
  LeftValue left{walk.target.items[ours.left].api, error(ours.left, theirs.left)};
  const double u = measuring::unit_roundoff(walk.target.text(walk.target.items[ours.left].dtype));
  // A statistic may hide the errors of what the calls take.
  double hidden = 0;
  for (std::size_t i = 0; i < ours.others.size(); ++i) {
    const double e = error(ours.others[i], theirs.others[i]);
    if (!(e < 1)) return {};
    left.before = std::max(left.before, e);
    if (walk.target_keys.of(ours.others[i]) != walk.golden_keys.of(theirs.others[i]))
      hidden = trained_rounding(u);
  }
  left.other = left.error > walk.threshold * (std::max(left.before, hidden) + kFew * u);
  return left;
}

}  // namespace

LeftValue left_value(const Walk& walk, const std::vector<std::uint32_t>& calls,
                     const std::vector<std::uint32_t>& golden_calls) {
  const InPlaceSide ours(walk.target, walk.target_keys, walk.alignment.golden_of);
  const InPlaceSide theirs(walk.golden, walk.golden_keys, walk.alignment.target_of);
  for (const std::uint32_t call : calls) {
    const InPlaceCalls chain = ours.from(call);
    if (!chain.is_known() || walk.target.items[chain.from].api != call) continue;
    const std::uint64_t key = walk.target_keys.of(chain.from);
    if (walk.target_flow.find(key) != ContentMap::kUnknown ||
        walk.gradient_items.find(key) != ContentMap::kUnknown)
      continue;
    for (const std::uint32_t golden_call : golden_calls) {
      const InPlaceCalls golden = theirs.from(golden_call);
      if (golden.is_known() && walk.golden_keys.of(golden.from) == key) return left_by(walk, chain, golden);
    }
  }
  return {};
}

}  // namespace msprobe::diagnosis
