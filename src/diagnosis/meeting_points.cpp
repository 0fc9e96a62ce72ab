// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/meeting_points.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "diagnosis/limits.hpp"
#include "support/interrupt.hpp"

namespace msprobe::diagnosis {
namespace {

using pairing::kNone;

/// Statistics that are nearer than this do not agree by chance.
constexpr double kExact = kFar * measuring::kSingleRoundoff;
/// If many contents have the same norm, this many with the nearest largest elements on each side are looked
/// at.
constexpr std::ptrdiff_t kMostNearby = 16;

/// The sum of the best order so far, by the place in golden's list (a Fenwick tree of maxima).
class BestAhead {
 public:
  explicit BestAhead(std::size_t places) : best_(places + 1) {}

  /// The best sum of all places before this one, and the last candidate of that order.
  std::pair<std::uint64_t, std::uint32_t> before(std::size_t place) const {
    std::pair<std::uint64_t, std::uint32_t> best{0, kNone};
    for (std::size_t i = place; i > 0; i &= i - 1) best = std::max(best, best_[i], less);
    return best;
  }
  void put(std::size_t place, std::uint64_t sum, std::uint32_t last) {
    for (std::size_t i = place + 1; i < best_.size(); i += i & (~i + 1))
      best_[i] = std::max(best_[i], {sum, last}, less);
  }

 private:
  static bool less(const std::pair<std::uint64_t, std::uint32_t>& a,
                   const std::pair<std::uint64_t, std::uint32_t>& b) {
    return a.first < b.first;
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> best_{};
};

struct Candidate {
  std::uint32_t target = 0;  // places in lists of both sides
  std::uint32_t golden = 0;
  double error = 0;
  std::uint64_t weight = 1;
  std::uint32_t before = kNone;  // the candidate before this one in the best order
};

/// The candidates, by number, of the order through both lists with the largest weight.
std::vector<std::uint32_t> best_order(std::vector<Candidate>& candidates, std::size_t golden_places) {
  // Candidates of one target are sorted by descending golden place. An order ascends on both sides, so it can
  // then contain only one candidate of each target.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(a.target, b.golden, a.error) < std::make_tuple(b.target, a.golden, b.error);
  });
  BestAhead ahead(golden_places);
  std::uint32_t last = kNone;
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    Candidate& each = candidates[i];
    const auto [sum, before] = ahead.before(each.golden);
    each.before = before;
    ahead.put(each.golden, sum + each.weight, i);
    if (sum + each.weight > most) {
      most = sum + each.weight;
      last = i;
    }
  }
  std::vector<std::uint32_t> order;
  for (; last != kNone; last = candidates[last].before) order.push_back(last);
  std::reverse(order.begin(), order.end());
  return order;
}

/// Contents by their number of elements and norm, in cells as wide as the norm may be off. The contents of a
/// cell are sorted by their largest element, since the norms of normalised tensors are all the same.
class Cells {
 public:
  Cells(const ContentFlow& flow, double width) : flow_(&flow), width_(std::log1p(width)) {
    for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
      const Content& content = flow.contents()[i];
      if (!content.is_finite()) continue;
      cells_[{content.elements, cell_of(content.norm)}].push_back({content.max, i});
    }
    for (auto& [key, cell] : cells_) std::sort(cell.begin(), cell.end());
  }

  template <class Take>
  void each_near(const Content& content, Take&& take) const {
    for (const std::int64_t step : {-1, 0, 1}) {
      const auto found = cells_.find({content.elements, cell_of(content.norm) + step});
      if (found == cells_.end()) continue;
      const auto& cell = found->second;
      const auto middle = std::lower_bound(cell.begin(), cell.end(), std::make_pair(content.max, 0U));
      const std::ptrdiff_t at = middle - cell.begin();
      const auto size = static_cast<std::ptrdiff_t>(cell.size());
      for (auto i = std::max<std::ptrdiff_t>(0, at - kMostNearby); i < std::min(size, at + kMostNearby); ++i)
        take(cell[static_cast<std::size_t>(i)].second);
    }
  }

 private:
  std::int64_t cell_of(double norm) const {
    return norm > 0 ? static_cast<std::int64_t>(std::floor(std::log(norm) / width_)) : INT64_MIN / 2;
  }
  const ContentFlow* flow_;
  double width_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<std::pair<double, std::uint32_t>>> cells_;
};

/// The groups of the parameters that calls take together with a content.
std::vector<std::uint32_t> neighbours_of(const ContentFlow& flow, std::uint32_t content,
                                         const std::vector<std::uint32_t>& group_of) {
  constexpr std::size_t kMostTakers = 8;
  std::vector<std::uint32_t> found;
  const auto takers = flow.takers(content);
  for (std::size_t i = 0; i < std::min(takers.size(), kMostTakers); ++i) {
    for (const std::uint32_t other : flow.taken(takers[i])) {
      if (other != content && group_of[other] != kNone) found.push_back(group_of[other]);
    }
  }
  return found;
}

bool have_one_in_common(const std::vector<std::uint32_t>& ours, const std::vector<std::uint32_t>& theirs) {
  return std::any_of(ours.begin(), ours.end(), [&](std::uint32_t group) {
    return std::find(theirs.begin(), theirs.end(), group) != theirs.end();
  });
}

/// Whether two contents are taken with a common parameter, or one of them is taken with no parameter.
bool may_be_same(const std::vector<std::uint32_t>& ours, const std::vector<std::uint32_t>& theirs) {
  return ours.empty() || theirs.empty() || have_one_in_common(ours, theirs);
}

}  // namespace

Meetings meet(const ContentFlow& target, const ContentFlow& golden, const ParameterMap& parameters,
              const Allowance& allowance) {
  Meetings met;
  met.golden_of.assign(target.contents().size(), kNone);
  met.error.assign(target.contents().size(), NAN);
  met.golden_meets.assign(golden.contents().size(), false);
  met.golden_error.assign(golden.contents().size(), NAN);
  const Cells cells(golden, std::max(allowance.element, allowance.norm));
  std::vector<Candidate> candidates;
  for (std::uint32_t i = 0; i < target.contents().size(); ++i) {
    check_interrupt();
    const Content& content = target.contents()[i];
    if (!content.is_finite()) continue;
    cells.each_near(content, [&](std::uint32_t j) {
      const Content& partner = golden.contents()[j];
      const bool integers = content.u == 0 && partner.u == 0;
      // Roundings of single elements cancel in the norm of many elements.
      const double of_norm =
          allowance.norm + std::max(content.u, partner.u) / std::sqrt(static_cast<double>(content.elements));
      if (std::abs(content.norm - partner.norm) > of_norm * partner.norm) return;
      const double error = error_between(content, partner);
      // Normalised tensors all have the same norm, and in half types their extremes are often near each
      // other.
      if (error > kExact && !may_be_same(neighbours_of(target, i, parameters.group_of),
                                         neighbours_of(golden, j, parameters.golden_group_of)))
        return;
      if (error <= (integers ? 0 : allowance.element)) candidates.push_back({i, j, error});
    });
  }
  for (const std::uint32_t i : best_order(candidates, golden.contents().size())) {
    met.golden_of[candidates[i].target] = candidates[i].golden;
    met.error[candidates[i].target] = candidates[i].error;
  }
  // Partners need not keep the order: one side may make a table in each layer, the other one once.
  for (const Candidate& each : candidates) {
    met.golden_meets[each.golden] = true;
    met.golden_error[each.golden] = std::fmin(met.golden_error[each.golden], each.error);
    if (met.golden_of[each.target] != kNone) continue;
    met.golden_of[each.target] = each.golden;
    met.error[each.target] = each.error;
  }
  for (const Joint& joint : golden.joints()) {
    if (!met.golden_meets[joint.whole]) continue;
    met.golden_meets[joint.part] = true;
    met.golden_error[joint.part] = std::fmin(met.golden_error[joint.part], met.golden_error[joint.whole]);
  }
  for (const Joint& joint : target.joints()) {
    if (met.golden_of[joint.whole] == kNone || met.golden_of[joint.part] != kNone) continue;
    met.golden_of[joint.part] = met.golden_of[joint.whole];
    met.error[joint.part] = met.error[joint.whole];
  }
  return met;
}

bool are_taken_with_one_parameter(const ContentFlow& target, std::uint32_t ours, const ContentFlow& golden,
                                  std::uint32_t theirs, const ParameterMap& parameters) {
  return have_one_in_common(neighbours_of(target, ours, parameters.group_of),
                            neighbours_of(golden, theirs, parameters.golden_group_of));
}

std::vector<NearPair> near_pairs(const ContentFlow& target, const std::vector<std::uint32_t>& ours,
                                 const ContentFlow& golden, const std::vector<std::uint32_t>& theirs) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_size;  // places in theirs
  for (std::uint32_t place = 0; place < theirs.size(); ++place)
    by_size[golden.contents()[theirs[place]].elements].push_back(place);
  std::vector<Candidate> candidates;
  for (std::uint32_t place = 0; place < ours.size(); ++place) {
    check_interrupt();
    const auto same_size = by_size.find(target.contents()[ours[place]].elements);
    if (same_size == by_size.end() || same_size->first == 1) continue;
    for (const std::uint32_t other : same_size->second) {
      const Content& content = target.contents()[ours[place]];
      const Content& partner = golden.contents()[theirs[other]];
      const double error = error_between(content, partner);
      if (error <= kNearby && std::abs(content.norm - partner.norm) <= kNearbyNorm * partner.norm)
        // Nearer pairs count for more.
        candidates.push_back(
            {place, other, error, static_cast<std::uint64_t>(kFar * (1 - error / kNearby)) + 1});
    }
  }
  std::vector<NearPair> found;
  for (const std::uint32_t i : best_order(candidates, theirs.size()))
    found.push_back({ours[candidates[i].target], theirs[candidates[i].golden], candidates[i].error});
  return found;
}

}  // namespace msprobe::diagnosis
