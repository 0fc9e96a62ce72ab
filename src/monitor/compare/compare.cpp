// SPDX-License-Identifier: Apache-2.0
#include "monitor/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

/// The relative rounding error of one number of a type. A sum of many numbers has a smaller one than its
/// elements.
double rounding_of(const std::string& dtype) {
  if (dtype.ends_with("bfloat16")) return 1.0 / 256;
  if (dtype.ends_with("float16")) return 1.0 / 2048;
  if (dtype.ends_with("float64")) return 1e-12;
  return 1e-6;
}

using Tensor = std::pair<std::int64_t, std::string>;  // rank and name

bool has_number(const std::vector<double>& values) {
  return std::ranges::any_of(values, [](double value) { return !std::isnan(value); });
}

class SeriesJudge {
 public:
  SeriesJudge(const TrackPairs& group, double tolerance) : group_(group), tolerance_(tolerance) {
    for (std::size_t i = 0; i < group.a.statistics.size(); ++i) {
      const auto& theirs = group.b.statistics;
      const auto found = std::find(theirs.begin(), theirs.end(), group.a.statistics[i]);
      if (found != theirs.end()) common_.emplace_back(i, static_cast<std::size_t>(found - theirs.begin()));
    }
  }

  std::vector<SeriesResult> take(std::size_t pair) const {
    const auto& [in_a, in_b] = group_.pairs[pair];
    if (in_a && in_b) return judge_pair(group_.a.tracks[*in_a], group_.b.tracks[*in_b], pair);
    const Track& track = in_a ? group_.a.tracks[*in_a] : group_.b.tracks[*in_b];
    if (track.steps.empty()) return {};
    SeriesResult alone = result_for(track);
    alone.presence = in_a ? SeriesResult::Presence::only_a : SeriesResult::Presence::only_b;
    (in_a ? alone.steps_a : alone.steps_b) = track.steps.size();
    alone.moment = moment_of(track.steps.front(), track, pair, group_.first_layout);
    return {std::move(alone)};
  }

 private:
  SeriesResult result_for(const Track& track) const {
    SeriesResult result;
    result.rank = group_.rank;
    result.quantity = track.quantity;
    result.stage = track.stage;
    result.name = track.name;
    result.micro_step = track.micro_step;
    return result;
  }

  std::vector<SeriesResult> judge_pair(const Track& a, const Track& b, std::size_t place) const {
    std::vector<SeriesResult> results;
    if (a.steps.empty() && b.steps.empty()) return results;
    const auto common = common_steps(a.steps, b.steps);
    for (const auto& [in_a, in_b] : common_) {
      // This kind of tensor does not have the statistic.
      if (!has_number(a.values[in_a]) && !has_number(b.values[in_b]) && group_.a.statistics[in_a] == "id")
        continue;
      SeriesResult result = result_for(a);
      result.statistic = group_.a.statistics[in_a];
      result.steps_a = a.steps.size() - common.size();
      result.steps_b = b.steps.size() - common.size();
      std::vector<std::int64_t> steps;
      std::vector<double> ours;
      std::vector<double> theirs;
      for (const auto& [i, k] : common) {
        const double x = a.values[in_a][i];
        const double y = b.values[in_b][k];
        if (is_no_number(x) || is_no_number(y)) {
          result.steps_a += !is_no_number(x);
          result.steps_b += !is_no_number(y);
          result.blank += is_no_number(x) && is_no_number(y);
          continue;
        }
        result.counted += result.statistic == "nans" && x > 0 && y > 0;
        steps.push_back(a.steps[i]);
        ours.push_back(x);
        theirs.push_back(y);
      }
      result.steps = steps.size();
      std::int64_t step = (a.steps.empty() ? b : a).steps.front();
      if (!steps.empty()) {
        result.from = steps.front();
        result.to = steps.back();
        result.resolution = resolution_of(ours);
        const PartingRule rule{.tolerance = tolerance_,
                               .rounding = rounding_of(a.dtype),
                               .resolution = result.resolution,
                               .counts_nans = result.statistic == "nans"};
        result.course = judge(ours, theirs, rule);
        step = steps[result.course.at];
        if (const auto found = onset(ours, theirs, rule)) {
          const std::int64_t at = steps[found->at];
          result.start = {*found, moment_of(at, a, place, group_.first_layout), ours[found->at],
                          theirs[found->at]};
        }
        for (const std::vector<double>* side : {&ours, &theirs}) {
          for (const double value : *side) result.largest = std::max(result.largest, std::fabs(value));
        }
        result.begins_equal = is_rounding(ours.front(), theirs.front(), rule);
        result.a = ours[result.course.at];
        result.b = theirs[result.course.at];
        result.first_unequal = steps[result.course.first_unequal];
        const auto any = [&](auto&& is) { return std::ranges::any_of(ours, is); };
        result.endless = result.resolution == 0 && any([](double value) {
                           return std::isfinite(value) && value != std::nearbyint(value);
                         });
        result.zeros = !any([](double value) { return value != 0; });
      }
      result.moment = moment_of(step, a, place, group_.first_layout);
      results.push_back(std::move(result));
    }
    return results;
  }

  const TrackPairs& group_;
  double tolerance_;
  std::vector<std::pair<std::size_t, std::size_t>> common_;  // places of a statistic on both sides
};

/// The order of results in the table; smaller comes first.
int rank_of(const SeriesResult& result) {
  if (!result.compared()) return 2;
  if (result.course.verdict == PartingVerdict::parted) return 0;
  if (result.course.verdict == PartingVerdict::passing) return 1;
  return result.course.verdict == PartingVerdict::within ? 3 : 4;
}

/// The norm says most about a tensor, so the other statistics come after it.
bool tells_less(const SeriesResult& result) {
  return result.statistic != "norm";
}

void sort_series(std::vector<SeriesResult>& series) {
  std::ranges::stable_sort(series, [](const SeriesResult& x, const SeriesResult& y) {
    const auto key = [](const SeriesResult& one) {
      return std::make_tuple(rank_of(one), one.moment, one.rank);
    };
    if (key(x) != key(y)) return key(x) < key(y);
    if (x.name != y.name || x.quantity != y.quantity) return false;
    return std::make_tuple(tells_less(x), -x.course.times) < std::make_tuple(tells_less(y), -y.course.times);
  });
}

constexpr std::string_view kOneRun = "only one run has them";

/// Counts the cells of one tensor, which has several statistics. A finite number at a step makes the other
/// cells of the step judged, too: a mean, for example, may be 0 / 0.
void cover(const std::vector<SeriesResult>& statistics, std::size_t columns, Coverage& coverage) {
  std::size_t most = 0;  // steps at which a statistic is finite
  for (const SeriesResult& result : statistics) {
    if (result.compared() && result.statistic != "nans")
      most = std::max(most, result.steps - result.course.not_finite);
  }
  for (const SeriesResult& result : statistics) {
    const std::string name =
        result.name + ", " + (result.statistic.empty() ? result.quantity : result.statistic);
    const bool whole =
        result.presence != SeriesResult::Presence::both;  // one result for all of its statistics
    if (const std::size_t alone = (result.steps_a + result.steps_b) * (whole ? columns : 1); alone > 0)
      coverage.miss(kOneRun, name, alone);
    if (whole) continue;
    const std::size_t common = result.steps + result.blank;
    // A count of NaN elements is the same in both runs, whichever elements are NaN; that is not equality.
    const std::size_t finite = result.steps - result.course.not_finite - result.counted;
    const std::size_t known = std::min(common, std::max(most, finite));
    if (known < common) coverage.miss("they are NaN, infinite or empty in both runs", name, common - known);
    coverage.explained += known - finite;
    coverage.compared += finite;
  }
}

}  // namespace

void ComparisonBuilder::take(const TrackPairs& group) {
  const SeriesJudge judge(group, tolerance_);
  std::vector<std::vector<SeriesResult>> slots(group.pairs.size());
  parallel_blocks(slots.size(), [&](std::size_t i) { slots[i] = judge.take(i); });
  ranks_.insert(group.rank);
  const std::size_t columns = std::max(group.a.statistics.size(), group.b.statistics.size());
  if (!group.pairs.empty() && columns > 0) with_series_.insert(group.rank);
  for (std::vector<SeriesResult>& slot : slots) {
    cover(slot, columns, found_.coverage);
    for (SeriesResult& result : slot) add(std::move(result));
  }
  note_statistics(group);
  for (const Tracks* side : {&group.a, &group.b}) {
    std::int64_t& last = side == &group.a ? found_.last_a : found_.last_b;
    for (const Track& track : side->tracks) {
      if (!track.steps.empty()) last = std::max(last, track.steps.back());
    }
    miss_unread(*side, columns, found_.coverage);
    found_.warnings.insert(found_.warnings.end(), side->warnings.begin(), side->warnings.end());
    found_.problems.insert(found_.problems.end(), side->problems.begin(), side->problems.end());
  }
}

void ComparisonBuilder::take_alone(const LoneRank& rank) {
  with_series_.insert(rank.rank);
  std::size_t steps = 0;
  for (const Track& track : rank.tracks.tracks) steps += track.steps.size();
  found_.coverage.miss("only one run has the rank", fmt::format("rank {}", rank.rank),
                       std::max<std::size_t>(steps * rank.tracks.statistics.size(), 1));
}

void ComparisonBuilder::expect(const MonitorTree& first) {
  for (const RankFolder& rank : first.ranks) {
    if (with_series_.contains(rank.rank)) continue;
    const std::string name = fmt::format("rank {}", rank.rank);
    found_.alone.push_back(name + " has no series in common");
    found_.coverage.miss("neither run has a series of the rank", name);
  }
}

MonitorComparison ComparisonBuilder::finish() {
  leave_out_noise();
  find_start();
  for (const SeriesResult& result : found_.series) {
    if (result.compared()) summarise(result);
  }
  sort_series(found_.series);
  found_.ranks = ranks_.size();
  if (endless_) found_.resolution.reset();
  for (auto& [phase, summary] : quantities_) found_.quantities.push_back(std::move(summary));
  return std::move(found_);
}

void ComparisonBuilder::add(SeriesResult result) {
  const Course& course = result.course;
  found_.not_compared += !result.compared();
  if (result.compared()) {
    found_.from = compared_ ? std::min(found_.from, result.from) : result.from;
    found_.to = compared_ ? std::max(found_.to, result.to) : result.to;
    compared_ = true;
    found_.cut_short += !result.complete();
    endless_ = endless_ || result.endless;
    if (result.resolution > 0)
      found_.resolution = std::min(found_.resolution.value_or(result.resolution), result.resolution);
    found_.not_finite += course.not_finite > 0;
    found_.recorded.insert(result.quantity);
  }
  found_.series.push_back(std::move(result));
}

void ComparisonBuilder::summarise(const SeriesResult& result) {
  if (result.unknown()) {
    ++found_.unknown;
    return;
  }
  found_.numbers += result.statistic != "nans";  // the number of NaN elements says nothing about the others
  const PartingVerdict verdict = result.course.verdict;
  found_.parted += verdict == PartingVerdict::parted;
  found_.passing += verdict == PartingVerdict::passing;
  found_.unequal += verdict == PartingVerdict::within;
  found_.identical += verdict == PartingVerdict::identical;
  found_.zeros += verdict == PartingVerdict::identical && result.zeros;
  QuantitySummary& summary = quantities_[{result.moment.phase, result.quantity}];
  summary.quantity = result.quantity;
  ++summary.series;
  if (!result.parted()) return;
  if (summary.parted++ == 0 || result.moment.step < summary.first_step)
    summary.first_step = result.moment.step;
}

/// If the loss does not depend on a parameter, such as the bias of attention's keys, its gradients are only
/// rounding errors. Adam turns them into steps of full size, which differ between any two runs.
void ComparisonBuilder::leave_out_noise() {
  // The threshold is chosen: float32 gradients that cancel are about 1e-8 of the others.
  constexpr double kNoise = 1e-6;
  const auto is_norm_of_gradient = [](const SeriesResult& result) {
    return result.compared() && result.statistic == "norm" && result.quantity.starts_with("grad_");
  };
  std::map<Tensor, double> norms;
  std::map<std::int64_t, double> largest;
  for (const SeriesResult& result : found_.series) {
    if (!is_norm_of_gradient(result)) continue;
    double& norm = norms[{result.rank, result.name}];
    norm = std::max(norm, result.largest);
    largest[result.rank] = std::max(largest[result.rank], result.largest);
  }
  for (SeriesResult& result : found_.series) {
    const auto norm = norms.find({result.rank, result.name});
    if (norm == norms.end() || !(norm->second <= kNoise * largest[result.rank])) continue;
    // The ratio is 0 / 0 after a step without a gradient.
    const bool ratio = result.quantity == "ratio" || result.quantity == "update";
    if (result.course.parting == Parting::number && !ratio) continue;
    result.noise = true;
    result.start.reset();
    if (result.course.parting == Parting::none) continue;
    found_.noise.insert(result.name);
    result.course.verdict = PartingVerdict::within;
    result.course.parting = Parting::none;
  }
}

/// If most tensors of a quantity stop being equal at the same moment, the quantity parts there, even if each
/// tensor fluctuates by more. The function finds the first such moment, if no series has parted before it.
void ComparisonBuilder::find_start() {
  using Tensors = std::set<Tensor>;
  const auto moment_in_step = [](Moment moment) {
    moment.place = 0;
    return moment;
  };
  std::map<std::string, Tensors> tensors;
  std::map<std::pair<Moment, std::string>, Tensors> starting;
  std::set<std::pair<Moment, std::string>> clear;
  std::optional<Moment> parted;
  std::optional<TrainingPhase> equal;  // the first phase in which some series begins equal
  for (const SeriesResult& result : found_.series) {
    if (!result.compared()) continue;
    if (!result.zeros && !result.noise) tensors[result.quantity].emplace(result.rank, result.name);
    if (result.parted() && (!parted || result.moment < *parted)) parted = result.moment;
    if (result.begins_equal) equal = std::min(equal.value_or(result.moment.phase), result.moment.phase);
    if (result.start)
      starting[{moment_in_step(result.start->moment), result.quantity}].emplace(result.rank, result.name);
    if (result.start && result.start->onset.clear && result.statistic == "norm")
      clear.emplace(moment_in_step(result.start->moment), result.quantity);
  }
  for (const auto& [at, names] : starting) {
    const auto& [moment, quantity] = at;
    // At the first step a cause is known only for phases after one in which something was equal.
    const bool first_step = moment.step == found_.from;
    if (parted && *parted < moment) return;
    const bool most = 2 * names.size() > tensors[quantity].size() && names.size() >= 2;
    if (!most && !clear.contains(at)) continue;
    if (first_step && (!equal || *equal >= moment.phase || moment.phase < TrainingPhase::backward)) return;
    for (SeriesResult& result : found_.series) {
      if (!result.start || result.quantity != quantity || moment_in_step(result.start->moment) != moment)
        continue;
      result.course.verdict = PartingVerdict::parted;
      result.course.parting = Parting::onset;
      result.course.at = result.start->onset.at;
      result.course.times = result.start->onset.share;
      result.course.lasts = true;
      result.moment = result.start->moment;
      result.a = result.start->a;
      result.b = result.start->b;
    }
    return;
  }
}

void ComparisonBuilder::note_statistics(const TrackPairs& group) {
  if (group.a.tracks.empty() || group.b.tracks.empty()) return;
  const auto note = [&](const Tracks& side, const Tracks& other, const char* which) {
    for (std::size_t place = 0; place < side.statistics.size(); ++place) {
      const std::string& statistic = side.statistics[place];
      if (std::find(other.statistics.begin(), other.statistics.end(), statistic) != other.statistics.end())
        continue;
      for (const auto& [in_a, in_b] : group.pairs) {
        if (!in_a || !in_b) continue;
        const Track& track = side.tracks[&side == &group.a ? *in_a : *in_b];
        const auto numbers =
            std::ranges::count_if(track.values[place], [](double each) { return !std::isnan(each); });
        if (numbers > 0)
          found_.coverage.miss(kOneRun, track.name + ", " + statistic, static_cast<std::uint64_t>(numbers));
      }
      std::string text = "the statistic '" + statistic + "' of " + side.tracks.front().quantity +
                         " is only in the " + which + " run";
      if (std::find(found_.alone.begin(), found_.alone.end(), text) == found_.alone.end())
        found_.alone.push_back(std::move(text));
    }
  };
  note(group.a, group.b, "first");
  note(group.b, group.a, "second");
}

TakesStatistic ChosenStatistics::filter() const {
  if (wanted_.empty()) return {};
  return [this](std::string_view statistic) {
    return std::find(wanted_.begin(), wanted_.end(), statistic) != wanted_.end();
  };
}

void ChosenStatistics::take(const TrackPairs& group) {
  for (const Tracks* side : {&group.a, &group.b}) {
    for (const std::string& statistic : side->statistics) missing_.erase(statistic);
  }
}

void ChosenStatistics::check_names() const {
  if (!missing_.empty())
    throw UsageError("--statistics: no series has a statistic '" + display(*missing_.begin()) + "'");
}

MonitorComparison compare(const MonitorCompareOptions& options, Progress* progress) {
  const MonitorTree a = find_tree(options.first);
  const MonitorTree b = find_tree(options.second);
  ComparisonBuilder builder(options.tolerance);
  ChosenStatistics chosen(options.statistics);
  std::vector<std::string> alone = visit_pairs(
      a, &b, chosen.filter(), progress,
      [&](TrackPairs& group) {
        chosen.take(group);
        builder.take(group);
      },
      [&](const LoneRank& rank) { builder.take_alone(rank); });
  chosen.check_names();
  builder.expect(a);
  MonitorComparison found = builder.finish();
  found.alone.insert(found.alone.begin(), alone.begin(), alone.end());
  found.warnings.insert(found.warnings.begin(), b.warnings.begin(), b.warnings.end());
  found.warnings.insert(found.warnings.begin(), a.warnings.begin(), a.warnings.end());
  return found;
}

}  // namespace msprobe::monitor
