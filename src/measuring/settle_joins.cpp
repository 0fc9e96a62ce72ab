// SPDX-License-Identifier: Apache-2.0
#include "measuring/settle_joins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dump/side.hpp"
#include "measuring/joined_data.hpp"
#include "measuring/measures.hpp"
#include "measuring/precision.hpp"
#include "measuring/statistics_difference.hpp"
#include "pairing/joins.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::kMean;
using dump::kNorm;
using dump::kStatistics;
using dump::RecordedValue;
using dump::Side;
using pairing::Decision;
using pairing::Joins;
using pairing::number_in;
using pairing::RankPart;
using pairing::Share;

using Axes = std::vector<std::int64_t>;
using dump::Placement;

constexpr double kClose = 1e-3;  // tolerance for one value computed in two ways

/// A value as the ranks of one side hold it; a value without parts counts as one part.
struct Holding {
  std::vector<dump::StatisticValues> statistics;
  std::vector<Axes> shapes;  // empty: unknown
  bool same = true;          // all ranks have the same numbers
  bool same_shape = true;
  std::optional<Placement> placement;  // if all ranks agree on it

  std::size_t size() const { return statistics.size(); }
  bool is_split() const { return size() > 1; }
};

Holding holding_of(const Side& side, const Joins* joins, std::uint32_t index) {
  Holding holding;
  const auto add = [&](std::string_view shape, const dump::StatisticValues& statistics, Placement placement) {
    if (std::optional<Axes> axes = pairing::axes_of(shape)) holding.shapes.push_back(std::move(*axes));
    if (holding.statistics.empty()) {
      holding.placement = placement;
    } else if (holding.placement != placement) {
      holding.placement.reset();
    }
    holding.statistics.push_back(statistics);
    holding.same = holding.same && pairing::same_statistics(holding.statistics.front(), statistics);
  };
  if (joins != nullptr && joins->is_split(index)) {
    for (const RankPart& part : joins->parts(index))
      add(joins->pool.at(part.shape), part.statistics, part.placement);
  } else {
    const Item& item = side.items[index];
    add(side.text(item.shape), item.statistics, {});
  }
  if (holding.shapes.size() != holding.size()) holding.shapes.clear();
  for (const Axes& shape : holding.shapes)
    holding.same_shape = holding.same_shape && shape == holding.shapes.front();
  if (holding.placement && holding.placement->kind == Placement::PlacementKind::unknown)
    holding.placement.reset();
  return holding;
}

/// A way in which the parts may form the whole.
struct JoinWay {
  Decision decision;  // undecided: copies, or terms of a sum
  Axes whole;
};

std::optional<JoinWay> along(const Holding& holding, std::size_t axis, std::size_t block) {
  JoinWay way{{.share = Share::shards,
               .axis = static_cast<std::uint8_t>(axis),
               .block = static_cast<std::uint8_t>(block)},
              holding.shapes.front()};
  if (axis >= way.whole.size()) return std::nullopt;
  way.whole[axis] = 0;
  for (std::size_t i = 0; i < holding.size(); i += block) {
    if (axis >= holding.shapes[i].size() ||
        __builtin_add_overflow(way.whole[axis], holding.shapes[i][axis], &way.whole[axis]))
      return std::nullopt;
  }
  return way;
}

/// The axis in which the ranks' shapes differ, if it is the only one.
std::optional<std::size_t> uneven_axis(const Holding& holding) {
  std::optional<std::size_t> found;
  const Axes& first = holding.shapes.front();
  for (const Axes& shape : holding.shapes) {
    if (shape.size() != first.size()) return std::nullopt;
    for (std::size_t axis = 0; axis < first.size(); ++axis) {
      if (shape[axis] == first[axis]) continue;
      if (found && *found != axis) return std::nullopt;
      found = axis;
    }
  }
  return found;
}

std::vector<JoinWay> ways_of(const Holding& holding) {
  std::vector<JoinWay> ways;
  if (holding.shapes.empty()) return ways;
  const Axes& shape = holding.shapes.front();
  const auto add = [&](std::optional<JoinWay> way) {
    if (way) ways.push_back(std::move(*way));
  };
  if (!holding.is_split()) {
    ways.push_back({{.share = Share::copies}, shape});
  } else if (holding.placement && holding.placement->kind == Placement::PlacementKind::shard) {
    add(along(holding, holding.placement->axis, 1));
  } else if (!holding.same_shape) {
    if (const auto axis = uneven_axis(holding)) add(along(holding, *axis, 1));
  } else if (holding.placement) {
    const bool whole = holding.placement->kind == Placement::PlacementKind::replicate;
    const bool masked = !whole && holding.placement->axis != 0;
    ways.push_back({{.share = whole ? Share::copies : Share::sums, .untold = masked}, shape});
  } else {
    ways.push_back({{}, shape});
    // With fewer heads than ranks, neighbouring ranks hold the same heads.
    constexpr std::size_t kMostRanksOfShard = 128;
    for (std::size_t block = 1; block < std::min(holding.size(), kMostRanksOfShard); ++block) {
      if (holding.size() % block != 0) continue;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) add(along(holding, axis, block));
    }
  }
  return ways;
}

std::pair<std::optional<JoinWay>, std::optional<JoinWay>> ways_that_meet(const Holding& target,
                                                                         const Holding& golden) {
  const std::vector<JoinWay> ours = ways_of(target);
  const std::vector<JoinWay> theirs = ways_of(golden);
  for (const JoinWay& one : ours) {
    for (const JoinWay& other : theirs) {
      if (one.whole == other.whole) return {one, other};
    }
  }
  return {};
}

double number_or_nan(const dump::StatisticValues& statistics, std::size_t which) {
  return number_in(statistics[which]).value_or(NAN);
}

double norm_of(const dump::StatisticValues& statistics) {
  return number_or_nan(statistics, kNorm);
}

bool within(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) ||
         std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::fabs(b));
}

/// Are the numbers of two ranks equal, apart from rounding?
bool agree(const dump::StatisticValues& a, const dump::StatisticValues& b, double tolerance) {
  for (const std::size_t which : {dump::kMax, dump::kMin, kNorm}) {
    if (!number_in(a[which]) || !number_in(b[which])) continue;
    if (!within(number_or_nan(a, which), number_or_nan(b, which), tolerance)) return false;
  }
  return true;
}

/// A hash of the ranks' numbers, which distinguishes values.
std::uint64_t content_of(const Holding& holding) {
  std::uint64_t hash = 0;
  for (const dump::StatisticValues& statistics : holding.statistics) {
    for (const std::size_t which : {dump::kMax, dump::kMin, kNorm}) {
      hash ^= std::bit_cast<std::uint64_t>(number_or_nan(statistics, which));
      hash *= 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

bool has_number(const dump::StatisticValues& statistics, const dump::TextPool& pool) {
  for (std::size_t which = 0; which < kStatistics; ++which) {
    if (kind_of_number(statistics[which], pool) != NumberKind::none) return true;
  }
  return false;
}

/// Does the part have statistics or a data file?
bool has_values(const RankPart& part, const dump::TextPool& pool) {
  return part.data_name != 0 || has_number(part.statistics, pool);
}

class JoinSettler {
 public:
  explicit JoinSettler(MeasuredRank& result)
      : result_(result),
        precision_(result.target, result.golden),
        sides_{{{result.target, result.target_joins.get()}, {result.golden, result.golden_joins.get()}}} {
    for (One& side : sides_) side.holds_shards.resize(side.side.apis.size());
  }

  void refuse_missing_ranks() const {
    for (const bool golden : {false, true}) check_ranks(golden);
    check_numbers_of_ranks();
  }

  void settle() {
    std::vector<std::size_t> pending;
    for (std::size_t row = 0; row < result_.rows.size(); ++row) {
      if (!result_.rows[row].matched()) continue;
      if (is_split(row, 0) || is_split(row, 1)) {
        if (!decide(row)) pending.push_back(row);
      }
    }
    for (const std::size_t row : pending) decide_pending(row);
    for (std::size_t row = 0; row < result_.rows.size(); ++row) {
      if (result_.rows[row].matched()) apply(row);
    }
  }

 private:
  struct One {
    Side& side;
    Joins* joins;
    std::vector<bool> holds_shards = {};  // by entry: an input or parameter is split into shards
    std::unordered_set<std::uint64_t> sums = {};
  };

  [[noreturn]] void refuse(bool golden, std::int64_t rank, std::string_view why) const {
    throw FormatError(display(sides_[golden ? 1 : 0].side.json),
                      fmt::format("rank {} of {} {}: the ranks of a model cannot be merged without it", rank,
                                  golden ? "golden" : "the target", why));
  }

  /// Refuses to merge if a rank has no values at all, since the others do not make up the whole.
  void check_ranks(bool golden) const {
    const One& one = sides_[golden ? 1 : 0];
    if (one.joins == nullptr || one.side.header.task == "structure") return;
    std::vector<bool> knows(one.joins->ranks.size());
    for (std::size_t item = 0; item < one.joins->items(); ++item) {
      for (const RankPart& part : one.joins->parts(item)) {
        if (knows[part.rank]) continue;
        knows[part.rank] = has_values(part, one.joins->pool);
      }
    }
    for (std::size_t rank = 0; rank < knows.size(); ++rank) {
      if (!knows[rank]) refuse(golden, one.joins->ranks[rank].number, "has no value to compare");
    }
  }

  /// If both sides are split in the same way, they must have the same ranks. They are split in the same way
  /// if most values that differ between ranks are equal for the same rank on both sides.
  void check_numbers_of_ranks() const {
    if (sides_[0].joins == nullptr || sides_[1].joins == nullptr) return;
    std::array<std::set<std::int64_t>, 2> numbers;
    for (std::size_t side = 0; side < 2; ++side) {
      for (const Joins::JoinedRank& rank : sides_[side].joins->ranks) numbers[side].insert(rank.number);
    }
    if (numbers[0] == numbers[1]) return;
    std::size_t alike = 0;
    std::size_t other = 0;
    for (std::size_t row = 0; row < result_.rows.size(); ++row) {
      if (!result_.rows[row].matched() || (!is_split(row, 0) && !is_split(row, 1))) continue;
      if (holding(row, 0).same && holding(row, 1).same) continue;
      ++(are_parts_alike(row) ? alike : other);
    }
    if (alike <= other) return;
    for (const bool golden : {false, true}) {
      for (const std::int64_t rank : numbers[golden ? 0 : 1]) {
        if (!numbers[golden ? 1 : 0].contains(rank)) refuse(golden, rank, "is missing");
      }
    }
  }

  /// Do all ranks that both sides have hold equal parts of the row's value?
  bool are_parts_alike(std::size_t row) const {
    const Joins& ours = *sides_[0].joins;
    const Joins& theirs = *sides_[1].joins;
    bool any = false;
    for (const RankPart& part : ours.parts(item_of(row, 0))) {
      for (const RankPart& partner : theirs.parts(item_of(row, 1))) {
        if (ours.ranks[part.rank].number != theirs.ranks[partner.rank].number) continue;
        if (!has_number(part.statistics, ours.pool) || !has_number(partner.statistics, theirs.pool)) continue;
        if (ours.pool.at(part.shape) != theirs.pool.at(partner.shape) ||
            !pairing::same_statistics(part.statistics, partner.statistics))
          return false;
        any = true;
      }
    }
    return any;
  }

  std::uint32_t item_of(std::size_t row, std::size_t side) const {
    return side == 0 ? result_.rows[row].target : result_.rows[row].golden;
  }
  const Item& item(std::size_t row, std::size_t side) const {
    return sides_[side].side.items[item_of(row, side)];
  }
  bool is_split(std::size_t row, std::size_t side) const {
    return sides_[side].joins != nullptr && sides_[side].joins->is_split(item_of(row, side));
  }
  Holding holding(std::size_t row, std::size_t side) const {
    return holding_of(sides_[side].side, sides_[side].joins, item_of(row, side));
  }

  void set(std::size_t row, std::size_t side, const Holding& holding, Decision decision) {
    if (!is_split(row, side)) return;
    One& one = sides_[side];
    one.joins->decision(item_of(row, side)) = decision;
    if (decision.share == Share::shards && item(row, side).state != dump::State::output)
      one.holds_shards[item(row, side).api] = true;
    if (decision.share == Share::sums) one.sums.insert(content_of(holding));
  }

  /// Decides by the information in the dump and by shapes; false if these do not suffice.
  bool decide(std::size_t row) {
    const std::array<Holding, 2> both = {holding(row, 0), holding(row, 1)};
    if (!item(row, 0).is_tensor || !item(row, 1).is_tensor) return true;
    const auto [target, golden] = ways_that_meet(both[0], both[1]);
    if (!target) {
      if (!both[0].shapes.empty() && !both[1].shapes.empty()) result_.rows[row].not_joined = true;
      return true;
    }
    std::array<Decision, 2> decisions = {target->decision, golden->decision};
    const auto is_open = [&](std::size_t side) { return decisions[side].share == Share::undecided; };
    if (is_open(0) && is_open(1) && both[0].size() == both[1].size() && !(both[0].same && both[1].same)) {
      // Both sides are split in the same way: the part of a rank is compared with the part of the same rank
      // on the other side.
      for (std::size_t side = 0; side < 2; ++side) set(row, side, both[side], {.share = Share::shards});
      return true;
    }
    bool open = false;
    for (std::size_t side = 0; side < 2; ++side) {
      if (is_open(side) && both[side].same) decisions[side].share = Share::copies;
      if (is_open(side)) {
        open = true;
      } else {
        set(row, side, both[side], decisions[side]);
      }
    }
    return !open;
  }

  /// Decides about values that have the shape of the whole, but differ between the ranks.
  void decide_pending(std::size_t row) {
    for (std::size_t side = 0; side < 2; ++side) {
      if (!is_split(row, side) || decision(row, side).share != Share::undecided) continue;
      const Holding ours = holding(row, side);
      set(row, side, ours, {.share = are_sums(row, side, ours) ? Share::sums : Share::copies});
    }
  }

  Decision& decision(std::size_t row, std::size_t side) {
    return sides_[side].joins->decision(item_of(row, side));
  }

  bool are_sums(std::size_t row, std::size_t side, const Holding& ours) const {
    const One& one = sides_[side];
    if (one.sums.contains(content_of(ours))) return true;
    const Holding other = holding(row, 1 - side);
    const bool whole = !other.is_split() || other.same;
    const measuring::Tolerance tolerance = tolerance_of(row);
    if (whole && is_copy_of(ours, other.statistics.front(), kClose + tolerance.norm)) return false;
    if (item(row, side).state == dump::State::output && one.holds_shards[item(row, side).api]) return true;
    if (!whole || adds_up(ours, other, kClose + tolerance.mean)) return true;
    // A term of a sum is much smaller than the sum, or much larger.
    constexpr double kNearlyTheSame = 0.05;
    return std::none_of(ours.statistics.begin(), ours.statistics.end(), [&](const auto& statistics) {
      return within(norm_of(statistics), norm_of(other.statistics.front()), kNearlyTheSame);
    });
  }

  /// Does one rank have the other side's value? If all other ranks have zeros, it is a sum and not a copy.
  static bool is_copy_of(const Holding& ours, const dump::StatisticValues& whole, double tolerance) {
    const bool any = std::any_of(ours.statistics.begin(), ours.statistics.end(),
                                 [&](const auto& statistics) { return agree(statistics, whole, tolerance); });
    const auto zeros = std::count_if(ours.statistics.begin(), ours.statistics.end(),
                                     [](const auto& statistics) { return norm_of(statistics) == 0; });
    return any && static_cast<std::size_t>(zeros) + 1 < ours.size();
  }

  static bool adds_up(const Holding& ours, const Holding& other, double tolerance) {
    double elements = 1;
    if (!ours.shapes.empty()) {
      for (const std::int64_t size : ours.shapes.front()) elements *= static_cast<double>(size);
    }
    double sum = 0;
    double scale = norm_of(other.statistics.front()) / std::sqrt(std::max(elements, 1.0));
    for (const auto& statistics : ours.statistics) {
      sum += number_or_nan(statistics, kMean);
      scale += std::fabs(number_or_nan(statistics, kMean));
    }
    return std::fabs(sum - number_or_nan(other.statistics.front(), kMean)) <= tolerance * scale;
  }

  void apply(std::size_t row) {
    std::array<bool, 2> known{};
    for (std::size_t side = 0; side < 2; ++side) {
      if (is_split(row, side)) put_together(row, side);
      if (is_split(row, side) && decision(row, side).untold) {
        sides_[side].side.items[item_of(row, side)].statistics.fill(RecordedValue::missing());
        return;
      }
      for (std::size_t which = 0; which < kStatistics; ++which)
        known[side] = known[side] || item(row, side).statistics[which].kind != dump::ValueKind::none;
    }
    // A tensor whose communication was not awaited has no numbers in the dump.
    if (known[0] == known[1] || !item(row, 0).is_tensor || !item(row, 1).is_tensor) return;
    const std::size_t side = known[0] ? 1 : 0;
    One& one = sides_[side];
    one.side.items[item_of(row, side)].statistics.fill(RecordedValue::missing());
    if (is_split(row, side)) decision(row, side).untold = true;
  }

  /// The precision of the recorded numbers of a row.
  measuring::Tolerance tolerance_of(std::size_t row) const {
    return precision_.of(sides_[0].side, item(row, 0), sides_[1].side, item(row, 1));
  }

  /// If a statistic computed from the parts equals the other side's within rounding, use the other side's
  /// number.
  static RecordedValue as_exact_as_told(const RecordedValue& joined, const std::vector<RecordedValue>& values,
                                        const Item& other, std::size_t which,
                                        const measuring::Tolerance& tolerance) {
    const double rounding = 0x1p-22 + (which == kNorm ? tolerance.norm : which == kMean ? tolerance.mean : 0);
    const std::optional<double> ours = number_in(joined);
    const RecordedValue recorded = other.statistics[which];
    const std::optional<double> theirs = number_in(recorded);
    if (!ours || !theirs) return joined;
    double scale = std::fabs(*theirs);
    for (const RecordedValue& value : values) scale = std::max(scale, std::fabs(*number_in(value)));
    return std::fabs(*ours - *theirs) <= rounding * scale ? recorded : joined;
  }

  void put_together(std::size_t row, std::size_t side) {
    One& one = sides_[side];
    Decision& decided = decision(row, side);
    Item& whole = one.side.items[item_of(row, side)];
    std::span<const RankPart> parts = one.joins->parts(item_of(row, side));
    if (is_partly_known(one.joins, item_of(row, side))) {
      whole.statistics.fill({});  // the statistics of one rank are not those of the whole
      return;
    }
    const double tolerance = tolerance_of_copies(one.side.text(whole.dtype));
    if (decided.share == Share::copies || decided.block > 1) {
      const std::size_t block = decided.share == Share::copies ? parts.size() : decided.block;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!agree(parts[i / block * block].statistics, parts[i].statistics, tolerance))
          decided.differ = true;
      }
    }
    if (decided.differ) result_.rows[row].copies_differ = true;
    const bool open = decided.share == Share::undecided && !holding(row, side).same;
    if (!open && decided.share != Share::shards && decided.share != Share::sums) return;
    std::vector<RankPart> terms;
    for (std::size_t i = 0; i < parts.size(); i += decided.block) terms.push_back(parts[i]);
    const std::vector<double> weights = pairing::weights_of(*one.joins, terms);
    for (std::size_t which = 0; which < kStatistics; ++which) {
      std::vector<RecordedValue> values;
      for (const RankPart& part : terms) values.push_back(part.statistics[which]);
      const std::optional<RecordedValue> joined =
          pairing::join_statistic(which, values, weights, decided.share);
      if (joined)
        whole.statistics.set(
            which, as_exact_as_told(*joined, values, item(row, 1 - side), which, tolerance_of(row)));
    }
    if (decided.share != Share::shards) return;
    Holding ours = holding(row, side);
    const std::optional<JoinWay> way =
        ours.shapes.empty() ? std::nullopt : along(ours, decided.axis, decided.block);
    if (way) whole.shape = one.side.pool.intern(fmt::format("[{}]", fmt::join(way->whole, ", ")));
  }

  MeasuredRank& result_;
  measuring::StatisticsPrecision precision_;  // of the numbers that each rank recorded
  std::array<One, 2> sides_;
};

}  // namespace

void guess_whole_shapes(pairing::PairedRank& result) {
  if (!result.target_joins && !result.golden_joins) return;
  Side& target = result.target;
  Side& golden = result.golden;
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t i = 0; i < golden.items.size(); ++i) by_name.emplace(golden.name(golden.items[i]), i);
  for (std::uint32_t i = 0; i < target.items.size(); ++i) {
    const auto found = by_name.find(target.name(target.items[i]));
    if (found == by_name.end() || !target.items[i].is_tensor || !golden.items[found->second].is_tensor)
      continue;
    const auto [ours, theirs] = ways_that_meet(holding_of(target, result.target_joins.get(), i),
                                               holding_of(golden, result.golden_joins.get(), found->second));
    if (!ours) continue;
    const std::string whole = fmt::format("[{}]", fmt::join(ours->whole, ", "));
    target.items[i].shape = target.pool.intern(whole);
    golden.items[found->second].shape = golden.pool.intern(whole);
  }
}

void refuse_missing_ranks(MeasuredRank& result) {
  if (!result.target_joins && !result.golden_joins) return;
  JoinSettler(result).refuse_missing_ranks();
}

bool is_partly_known(const Joins* joins, std::uint32_t item) {
  if (joins == nullptr || item >= joins->items() || !joins->is_split(item)) return false;
  const std::span<const RankPart> parts = joins->parts(item);
  const bool first = has_values(parts.front(), joins->pool);
  return std::ranges::any_of(parts,
                             [&](const RankPart& part) { return has_values(part, joins->pool) != first; });
}

void settle_joins(MeasuredRank& result) {
  if (!result.target_joins && !result.golden_joins) return;
  JoinSettler(result).settle();
}

}  // namespace msprobe::measuring
