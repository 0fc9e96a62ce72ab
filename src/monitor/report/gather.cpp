// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/gather.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "support/error.hpp"
#include "support/parallel.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::size_t kMostCurves = 4;
constexpr std::size_t kMostCells = std::size_t{1} << 27;  // of one statistic in one block
constexpr double kNoValue = NAN;

/// The numbers of a row at the steps of its block.
using Aligned = Curve::CurveRun;

/// `track`: of that side, or null.
Aligned align(const Tracks& side, const Track* track, const std::string& statistic,
              const std::vector<std::int64_t>& steps) {
  Aligned row{std::vector<double>(steps.size(), kNoValue), std::vector<bool>(steps.size())};
  const auto found = std::ranges::find(side.statistics, statistic);
  if (track == nullptr || found == side.statistics.end()) return row;
  const std::vector<double>& values =
      track->values[static_cast<std::size_t>(found - side.statistics.begin())];
  for (const auto& [from, to] : common_steps(track->steps, steps)) {
    row.values[to] = values[from];
    row.there[to] = !is_no_number(row.values[to]);
  }
  return row;
}

std::vector<double> present(const Aligned& row) {
  std::vector<double> values;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (row.there[i]) values.push_back(row.values[i]);
  }
  return values;
}

/// Finds the outbreak; its place counts all steps of the block, including missing ones.
std::optional<Outbreak> outbreak_of(const Aligned& row) {
  std::optional<Outbreak> found = find_outbreak(present(row));
  if (!found) return found;
  std::size_t before = found->at;  // the place among the present numbers
  found->at = 0;
  while (!row.there[found->at] || before-- > 0) ++found->at;
  return found;
}

/// Counts the cells of a tensor of one run. They can be judged from the first finite number on, which also
/// covers the other statistics of its step; a count of NaN elements says nothing about the others.
void cover(const Track& track, const std::vector<std::string>& statistics, Coverage& coverage) {
  for (std::size_t i = 0; i < track.steps.size(); ++i) {
    std::uint64_t finite = 0;
    std::uint64_t blank = 0;
    std::uint64_t counts = 0;
    for (std::size_t k = 0; k < statistics.size(); ++k) {
      const double value = track.values[k][i];
      counts += statistics[k] == "nans";
      finite += statistics[k] != "nans" && std::isfinite(value);
      blank += is_no_number(value);
    }
    if (finite > 0) {
      coverage.compared += finite;
      coverage.explained += statistics.size() - finite;
    } else if (!statistics.empty()) {
      coverage.miss(
          counts == statistics.size() ? "the number of NaN elements does not describe the other elements"
          : blank + counts == statistics.size() ? "they are empty"
                                                : "they are NaN or infinite",
          fmt::format("{} of {} at step {}", track.quantity, track.name, track.steps[i]), statistics.size());
    }
  }
}

/// NaN counts as the largest value.
double badness(double value) {
  return std::isnan(value) ? INFINITY : value;
}

/// Appends the codes of a row; for a bin of several steps the smallest and the largest.
void append_codes(std::vector<std::uint16_t>& codes, const Aligned& row, const CellScale& scale,
                  std::size_t width) {
  const std::size_t steps = row.values.size();
  if (width == 1) {
    for (std::size_t i = 0; i < steps; ++i)
      codes.push_back(row.there[i] ? cell_code(scale, row.values[i]) : CellScale::kMissing);
    return;
  }
  for (std::size_t from = 0; from < steps; from += width) {
    std::optional<double> least;
    std::optional<double> most;
    for (std::size_t i = from; i < std::min(steps, from + width); ++i) {
      if (!row.there[i]) continue;
      const double value = row.values[i];
      if (!least || badness(value) < badness(*least)) least = value;
      if (!most || badness(value) > badness(*most) || std::isnan(value)) most = value;
    }
    for (const auto& one : {least, most}) codes.push_back(one ? cell_code(scale, *one) : CellScale::kMissing);
  }
}

class CurvePacker {
 public:
  CurvePacker(const ReportOptions& options, std::size_t width)
      : width_(width), two_(!options.second.empty()), builder_(options.tolerance) {
    data_.outbreaks.resize(two_ ? 2 : 1);
  }

  void take(TrackPairs& group) {
    if (!group.pairs.empty() && !group.a.statistics.empty()) with_series_.insert(group.rank);
    if (two_) {
      builder_.take(group);
    } else {
      cover(group.a);
    }
    std::vector<std::string> quantities;
    for (const Tracks* side : {&group.a, &group.b}) {
      for (const Track& track : side->tracks) {
        if (std::find(quantities.begin(), quantities.end(), track.quantity) == quantities.end())
          quantities.push_back(track.quantity);
      }
      data_.warnings.insert(data_.warnings.end(), side->warnings.begin(), side->warnings.end());
      data_.problems.insert(data_.problems.end(), side->problems.begin(), side->problems.end());
    }
    for (const std::string& quantity : quantities) pack_quantity(group, quantity);
  }

  void take_alone(const LoneRank& rank) { builder_.take_alone(rank); }

  ReportData finish(const MonitorTree& first) {
    if (two_) {
      builder_.expect(first);
      data_.comparison = builder_.finish();
      data_.coverage = data_.comparison->coverage;
      place_partings();
    } else {
      for (const RankFolder& rank : first.ranks) {
        if (!with_series_.contains(rank.rank))
          data_.coverage.miss("the rank has no series", fmt::format("rank {}", rank.rank));
      }
    }
    return std::move(data_);
  }

  std::size_t bytes() const { return bytes_; }

 private:
  struct TrackPair {
    const Track* a;
    const Track* b;
    std::size_t place;
    const Track& any() const { return a != nullptr ? *a : *b; }
  };

  void cover(const Tracks& tracks) {
    for (const Track& track : tracks.tracks) monitor::cover(track, tracks.statistics, data_.coverage);
    miss_unread(tracks, tracks.statistics.size(), data_.coverage);
  }

  std::vector<TrackPair> pairs_of(const TrackPairs& group, const std::string& quantity) const {
    std::vector<TrackPair> pairs;
    for (std::size_t i = 0; i < group.pairs.size(); ++i) {
      const auto& [in_a, in_b] = group.pairs[i];
      const TrackPair pair{in_a ? &group.a.tracks[*in_a] : nullptr, in_b ? &group.b.tracks[*in_b] : nullptr,
                           i};
      const bool has_steps =
          (pair.a != nullptr && !pair.a->steps.empty()) || (pair.b != nullptr && !pair.b->steps.empty());
      if (pair.any().quantity == quantity && has_steps) pairs.push_back(pair);
    }
    return pairs;
  }

  /// The steps of all tracks, without duplicates. Most tracks have the same steps.
  static std::vector<std::int64_t> steps_of(const std::vector<TrackPair>& pairs) {
    std::vector<std::int64_t> steps;
    for (const TrackPair& pair : pairs) {
      for (const Track* track : {pair.a, pair.b}) {
        if (track == nullptr || track->steps == steps) continue;
        std::vector<std::int64_t> both;
        std::set_union(steps.begin(), steps.end(), track->steps.begin(), track->steps.end(),
                       std::back_inserter(both));
        steps = std::move(both);
      }
    }
    return steps;
  }

  void pack_quantity(const TrackPairs& group, const std::string& quantity) {
    std::vector<TrackPair> pairs = pairs_of(group, quantity);
    if (pairs.empty()) return;
    const std::vector<std::int64_t> steps = steps_of(pairs);
    QuantityRows block;
    block.rank = group.rank;
    block.quantity = quantity;
    block.width = width_;
    while (pairs.size() > kMostCells / (steps.size() / block.width * 2 + 2) && block.width < steps.size())
      block.width *= 2;
    if (pairs.size() > kMostCells / 4) throw FormatError(quantity + ": too many series for a report");
    for (std::size_t i = 0; i < steps.size(); i += block.width) block.steps.push_back(steps[i]);
    for (const TrackPair& pair : pairs) {
      block.names.push_back(pair.any().name);
      block.stages.push_back(pair.any().stage.value_or(-1));
      block.micro_steps.push_back(pair.any().micro_step.value_or(-1));
    }
    std::vector<std::string> statistics = group.a.statistics;
    for (const std::string& statistic : group.b.statistics) {
      if (std::find(statistics.begin(), statistics.end(), statistic) == statistics.end())
        statistics.push_back(statistic);
    }
    for (const std::string& statistic : statistics)
      pack_statistic(group, block, pairs, steps, statistic, statistic == statistics.front());
    data_.blocks.push_back(std::move(block));
  }

  void pack_statistic(const TrackPairs& group, QuantityRows& block, const std::vector<TrackPair>& pairs,
                      const std::vector<std::int64_t>& steps, const std::string& statistic, bool is_first) {
    PackedStatistic packed;
    packed.name = statistic;
    packed.scales.resize(pairs.size());
    std::vector<std::vector<std::uint16_t>> codes(two_ ? 2 : 1);
    std::vector<std::vector<std::vector<std::uint16_t>>> slots(pairs.size());
    std::vector<std::vector<std::optional<Outbreak>>> found(pairs.size());
    parallel_blocks(pairs.size(), [&](std::size_t i) {
      const Aligned a = align(group.a, pairs[i].a, statistic, steps);
      const Aligned b = two_ ? align(group.b, pairs[i].b, statistic, steps) : Aligned{};
      packed.scales[i] = scale_of(present(a), present(b));
      slots[i].resize(codes.size());
      append_codes(slots[i][0], a, packed.scales[i], block.width);
      found[i].push_back(outbreak_of(a));
      if (!two_) return;
      append_codes(slots[i][1], b, packed.scales[i], block.width);
      found[i].push_back(outbreak_of(b));
    });
    for (std::size_t run = 0; run < codes.size(); ++run) {
      for (auto& slot : slots) codes[run].insert(codes[run].end(), slot[run].begin(), slot[run].end());
      packed.cells.push_back(pack_codes(codes[run], codes[run].size() / pairs.size()));
      bytes_ += packed.cells.back().size() * 4 / 3;
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (statistic == "norm" || is_first) note_curve(group, pairs[i], statistic);
      for (std::size_t run = 0; run < found[i].size(); ++run)
        note_outbreak(group, block, pairs[i], i, statistic, run, found[i][run], steps);
    }
    data_.series += pairs.size();
    block.statistics.push_back(std::move(packed));
  }

  void note_outbreak(const TrackPairs& group, QuantityRows& block, const TrackPair& pair, std::size_t row,
                     const std::string& statistic, std::size_t run, const std::optional<Outbreak>& outbreak,
                     const std::vector<std::int64_t>& steps) {
    // Statistics of signed numbers near zero grow and shrink without a fault, so only the norm shows growth.
    // A count of NaN elements is no outbreak either: the other statistics show the NaN.
    const bool number = outbreak && outbreak->kind == Outbreak::OutbreakKind::number;
    if (!outbreak || (!number && statistic != "norm")) return;
    const Track& track = run == 0 ? *pair.a : *pair.b;
    const std::int64_t step = steps[outbreak->at];
    block.marks.push_back({row, statistic, step, number ? "number" : "growth", static_cast<int>(run)});
    const Moment moment = moment_of(step, track, pair.place, group.first_layout);
    std::optional<RunOutbreak>& first = data_.outbreaks[run];
    const bool better = !first || moment < first->moment || (moment == first->moment && statistic == "norm");
    if (better)
      first = RunOutbreak{moment, group.rank, track.quantity + " of " + track.name, statistic, *outbreak};
  }

  static bool is_like_loss(const Track& track) {
    return track.name.find("loss") != std::string::npos || track.shape == "[]" || track.shape == "()";
  }

  void note_curve(const TrackPairs& group, const TrackPair& pair, const std::string& statistic) {
    const Track& track = pair.any();
    if (track.quantity != "actv" || !is_like_loss(track) || data_.curves.size() >= kMostCurves) return;
    const bool known = std::ranges::any_of(
        data_.curves, [&](const Curve& one) { return one.name == track.name && one.rank == group.rank; });
    if (known || track.micro_step.value_or(0) != 0) return;
    Curve curve;
    curve.name = track.name;
    curve.rank = group.rank;
    curve.steps = steps_of({pair});
    curve.runs.push_back(align(group.a, pair.a, statistic, curve.steps));
    if (two_) curve.runs.push_back(align(group.b, pair.b, statistic, curve.steps));
    data_.curves.push_back(std::move(curve));
  }

  /// Marks the partings of the comparison at the rows of the blocks.
  void place_partings() {
    using Key = std::tuple<std::int64_t, std::string, std::int64_t, std::string, std::int64_t>;
    std::map<Key, std::pair<std::size_t, std::size_t>> rows;
    for (std::size_t i = 0; i < data_.blocks.size(); ++i) {
      const QuantityRows& block = data_.blocks[i];
      for (std::size_t row = 0; row < block.names.size(); ++row) {
        rows[{block.rank, block.quantity, block.stages[row], block.names[row], block.micro_steps[row]}] = {
            i, row};
      }
    }
    for (const SeriesResult& result : data_.comparison->series) {
      if (!result.compared() || result.course.parting == Parting::none) continue;
      const auto found = rows.find({result.rank, result.quantity, result.stage.value_or(-1), result.name,
                                    result.micro_step.value_or(-1)});
      if (found == rows.end()) continue;
      const auto& [block, row] = found->second;
      data_.blocks[block].marks.push_back(
          {row, result.statistic, result.moment.step, result.parted() ? "parted" : "passing", 0});
    }
  }

  std::size_t width_;
  bool two_;
  ComparisonBuilder builder_;
  std::set<std::int64_t> with_series_;
  ReportData data_;
  std::size_t bytes_ = 0;
};

}  // namespace

ReportData gather(const ReportOptions& options, Progress* progress) {
  const MonitorTree a = find_tree(options.first);
  std::optional<MonitorTree> b;
  if (!options.second.empty()) b = find_tree(options.second);
  const double most = options.most_megabytes * 1e6;
  for (std::size_t width = 1;;) {
    CurvePacker packer(options, width);
    ChosenStatistics chosen(options.statistics);
    std::vector<std::string> alone = visit_pairs(
        a, b ? &*b : nullptr, chosen.filter(), progress,
        [&](TrackPairs& group) {
          chosen.take(group);
          packer.take(group);
        },
        [&](const LoneRank& rank) { packer.take_alone(rank); });
    chosen.check_names();
    const auto bytes = static_cast<double>(packer.bytes());
    ReportData data = packer.finish(a);
    if (bytes <= most || width >= 1024) {
      if (width > 1) {
        data.notes.push_back("steps are shown in groups of " + std::to_string(width) +
                             ", each by its smallest and largest number (--max-size)");
      }
      if (data.comparison)
        data.comparison->alone.insert(data.comparison->alone.begin(), alone.begin(), alone.end());
      for (const MonitorTree* tree : std::initializer_list<const MonitorTree*>{&a, b ? &*b : nullptr}) {
        if (tree != nullptr)
          data.warnings.insert(data.warnings.begin(), tree->warnings.begin(), tree->warnings.end());
      }
      return data;
    }
    // A bin keeps two numbers, the smallest and the largest.
    const auto needed =
        static_cast<std::size_t>(2 * bytes * static_cast<double>(width == 1 ? 1 : width / 2) / most) + 1;
    while (width < needed) width *= 2;
    width = std::max<std::size_t>(width, 4);
  }
}

}  // namespace msprobe::monitor
