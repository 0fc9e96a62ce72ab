// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/meeting_points.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>
#include <utility>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "dump/names.hpp"
#include "pairing/alignment.hpp"
#include "support/interrupt.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using dump::State;

/// Nearer than this may be the same with an error; unrelated tensors of one shape are further apart. Chosen:
/// extremes of a thousand normal numbers scatter by a tenth.
constexpr double kNearby = 0.05;
/// Of one norm so many others are looked at, on each side.
constexpr std::size_t kMostNearby = 32;
/// What an equal pair counts for, beside one that is near.
constexpr std::uint64_t kEqualWeight = 1000;

struct Candidate {
  std::uint32_t target = 0;
  std::uint32_t golden = 0;
  double error = 0;
  std::uint64_t weight = 0;
  std::uint32_t before = kNone;  // the candidate ahead of it in the best order
};

struct Sized {
  double norm = 0;
  std::uint32_t place = 0;
  bool operator<(const Sized& other) const {
    return std::make_pair(norm, place) < std::make_pair(other.norm, other.place);
  }
};

/// The best sum so far, by the place in golden's list (a Fenwick tree of maxima).
class BestAhead {
 public:
  explicit BestAhead(std::size_t places) : best_(places + 1) {}

  /// Of all places before this one.
  std::pair<std::uint64_t, std::uint32_t> before(std::size_t place) const {
    std::pair<std::uint64_t, std::uint32_t> best{0, kNone};
    for (std::size_t i = place; i > 0; i &= i - 1) best = std::max(best, best_[i], less);
    return best;
  }
  void put(std::size_t place, std::uint64_t sum, std::uint32_t candidate) {
    for (std::size_t i = place + 1; i < best_.size(); i += i & (~i + 1))
      best_[i] = std::max(best_[i], {sum, candidate}, less);
  }

 private:
  static bool less(const std::pair<std::uint64_t, std::uint32_t>& a,
                   const std::pair<std::uint64_t, std::uint32_t>& b) {
    return a.first < b.first;
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> best_{};
};

/// The largest unit roundoff of all: what is computed from half types has their rounding, whatever its type.
double coarsest_of(const Side& side, const std::vector<std::uint32_t>& items) {
  double u = kSingleRoundoff;
  for (const std::uint32_t i : items) u = std::max(u, unit_roundoff(side.text(side.items[i].dtype)));
  return u;
}

double norm_of(const Side& side, const Item& item) {
  return std::abs(number_of(side, item, dump::kNorm));  // of a single number, recorders keep the sign
}

/// A loss may be the mean of logarithms on one side and of their negatives on the other.
Measure apart(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  Measure found = measure(target, item, golden, partner);
  if (elements_of(golden.text(partner.shape)) == 1 && found.known) {
    const double norm = norm_of(golden, partner);
    found.e = found.b = std::abs(norm_of(target, item) - norm) / norm;
  }
  return found;
}

}  // namespace

std::vector<std::uint32_t> distinct_outputs(const Side& side,
                                            const std::function<bool(std::uint32_t api)>& counts) {
  std::vector<std::uint32_t> found;
  std::unordered_set<std::uint64_t> known;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    const auto name = dump::parse_entry_name(side.text(side.apis[api].name));
    if (!name || name->direction != dump::Direction::forward || !counts(api)) continue;
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if (item.state != State::output || !item.is_tensor || unit_roundoff(side.text(item.dtype)) == 0)
        continue;
      const std::uint64_t key = content_key(side, item);
      if (key != 0 && known.insert(key).second) found.push_back(i);
    }
  }
  return found;
}

std::vector<Meeting> meeting_points(const Side& target, const std::vector<std::uint32_t>& outputs,
                                    const Side& golden, const std::vector<std::uint32_t>& golden_outputs,
                                    double drift) {
  std::map<std::uint64_t, std::vector<Sized>> by_size;  // golden's, by the number of elements
  for (std::uint32_t place = 0; place < golden_outputs.size(); ++place) {
    const Item& item = golden.items[golden_outputs[place]];
    by_size[elements_of(golden.text(item.shape))].push_back({norm_of(golden, item), place});
  }
  for (auto& [elements, tensors] : by_size) std::sort(tensors.begin(), tensors.end());
  const double u = std::max(coarsest_of(target, outputs), coarsest_of(golden, golden_outputs));
  std::vector<Candidate> candidates;
  for (std::uint32_t place = 0; place < outputs.size(); ++place) {
    check_interrupt();
    const Item& item = target.items[outputs[place]];
    const auto same_size = by_size.find(elements_of(target.text(item.shape)));
    if (same_size == by_size.end()) continue;
    const std::vector<Sized>& others = same_size->second;
    const double norm = norm_of(target, item);
    const auto middle = std::lower_bound(others.begin(), others.end(), Sized{norm, 0});
    const auto at = static_cast<std::size_t>(middle - others.begin());
    const std::size_t first = at - std::min(at, kMostNearby);
    const std::size_t last = std::min(others.size(), at + kMostNearby);
    for (std::size_t i = first; i < last; ++i) {
      const Item& partner = golden.items[golden_outputs[others[i].place]];
      const Measure found = apart(target, item, golden, partner);
      if (!found.known || found.blind || !(found.e <= kNearby)) continue;
      // Single elements of half types are off by their rounding, norms are not.
      const bool equal = is_half(u)
                             ? found.e <= kUnrecordedRoundings * u + drift && found.b <= kMostOfEqual + drift
                             : found.e <= kRoundingsOfPort * u + drift;
      candidates.push_back(
          {place, others[i].place, found.e,
           equal ? kEqualWeight : static_cast<std::uint64_t>(10 * (1 - found.e / kNearby)) + 1});
    }
  }
  // Of one tensor the golden places from behind, so that none stands ahead of another of the same.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::make_tuple(a.target, b.golden, a.error) < std::make_tuple(b.target, a.golden, b.error);
  });
  BestAhead ahead(golden_outputs.size());
  std::uint32_t best = kNone;
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    Candidate& each = candidates[i];
    const auto [sum, before] = ahead.before(each.golden);
    each.before = before;
    const std::uint64_t total = sum + each.weight;
    ahead.put(each.golden, total, i);
    if (total > most) {
      most = total;
      best = i;
    }
  }
  std::vector<Meeting> met;
  for (; best != kNone; best = candidates[best].before) {
    const Candidate& each = candidates[best];
    met.push_back({each.target, each.golden, each.error, each.weight == kEqualWeight});
  }
  std::reverse(met.begin(), met.end());
  return met;
}

}  // namespace msprobe::diagnosis
