// SPDX-License-Identifier: Apache-2.0
// Compares two runs of a training, series by series: finds series that part by more than their own
// fluctuation, the place, and the first one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "monitor/compare/pairs.hpp"
#include "monitor/parting/moment.hpp"
#include "monitor/parting/parting.hpp"
#include "support/coverage.hpp"

namespace msprobe::monitor {

struct MonitorCompareOptions {
  std::string first;
  std::string second;
  std::vector<std::string> statistics;  // empty: all
  double tolerance = 8;
};

/// One statistic of one tensor in both runs, or a tensor that one run lacks.
struct SeriesResult {
  enum class Presence : std::uint8_t { both, only_a, only_b };

  std::int64_t rank = 0;
  std::string quantity;
  std::optional<std::int64_t> stage;
  std::string name;
  std::optional<std::int64_t> micro_step;
  std::string statistic;  // empty: all statistics of the one run
  Presence presence = Presence::both;

  Course course;
  Moment moment;  // where it parts, passes, or for the first time has steps
  double a = 0;   // the numbers there
  double b = 0;
  std::int64_t first_unequal = 0;  // a step
  double resolution = 0;           // step of the written decimals; 0: integers, or all digits
  bool endless = false;            // doubles with all digits
  bool zeros = false;              // every number is 0
  std::size_t steps = 0;           // compared
  std::int64_t from = 0;           // the first and the last of them
  std::int64_t to = 0;
  std::size_t steps_a = 0;  // steps at which only one run has a number
  std::size_t steps_b = 0;
  std::size_t blank = 0;    // steps at which both runs have a row, but no number
  std::size_t counted = 0;  // steps at which both runs count NaN elements

  /// The moment at which the series stops being equal, however much it fluctuates, and the numbers there.
  struct DifferenceStart {
    Onset onset;
    Moment moment;
    double a = 0;
    double b = 0;
  };
  std::optional<DifferenceStart> start;
  double largest = 0;         // the largest absolute number of both runs
  bool noise = false;         // the gradients of its parameter are only rounding errors: not judged
  bool begins_equal = false;  // equal at the first common step, apart from rounding

  bool parted() const { return presence == Presence::both && course.verdict == PartingVerdict::parted; }
  bool compared() const { return presence == Presence::both && steps > 0; }
  /// Is the series NaN or infinite in the same way in both runs at every step? That is not equality.
  bool unknown() const {
    return compared() && course.not_finite == steps && course.verdict == PartingVerdict::identical;
  }
  bool complete() const { return compared() && steps_a == 0 && steps_b == 0; }
};

/// The result for one quantity.
struct QuantitySummary {
  std::string quantity;
  std::size_t series = 0;  // compared
  std::size_t parted = 0;
  std::int64_t first_step = 0;  // at which one parts
};

struct MonitorComparison {
  std::vector<SeriesResult> series;  // parted ones by their moments, then passing, missing, other ones
  std::size_t parted = 0;
  std::size_t passing = 0;
  std::size_t unequal = 0;  // series that differ but neither part nor pass
  std::size_t identical = 0;
  std::size_t unknown = 0;                  // NaN or infinite throughout, in both runs
  std::size_t numbers = 0;                  // series that are neither of those nor counts of NaN
  std::size_t zeros = 0;                    // series among `numbers` that are 0 throughout
  std::set<std::string> noise;              // parameters that would have parted by rounding errors alone
  std::optional<double> resolution;         // step of the finest decimals, if they are limited
  std::size_t not_finite = 0;               // series that are NaN or infinite at a step in both runs
  std::size_t not_compared = 0;             // series that only one run has, or without a common step
  std::size_t cut_short = 0;                // series with steps that only one run has
  std::vector<QuantitySummary> quantities;  // in the order of a step
  std::set<std::string> recorded;           // quantities that both runs have
  std::int64_t from = 0;                    // the first and the last step that was compared
  std::int64_t to = 0;
  std::int64_t last_a = 0;  // the last step of each run
  std::int64_t last_b = 0;
  std::size_t ranks = 0;
  Coverage coverage;               // of the cells
  std::vector<std::string> alone;  // ranks and statistics that only one run has
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // files that could not be read

  /// Series with a common step.
  std::size_t compared() const { return parted + passing + unequal + identical + unknown; }
};

/// Judges one group of tracks after another.
class ComparisonBuilder {
 public:
  explicit ComparisonBuilder(double tolerance) : tolerance_(tolerance) {}

  /// Results have the order of the group's pairs and of the statistics.
  void take(const TrackPairs& group);
  /// Counts the tensors of a rank that only one run has.
  void take_alone(const LoneRank& rank);
  /// Call this last: ranks of the first run that contributed nothing are reported as ranks without series.
  void expect(const MonitorTree& first);
  MonitorComparison finish();

 private:
  void add(SeriesResult result);
  void summarise(const SeriesResult& result);
  void note_statistics(const TrackPairs& group);
  void leave_out_noise();
  void find_start();

  double tolerance_;
  bool compared_ = false;
  bool endless_ = false;
  MonitorComparison found_;
  std::set<std::int64_t> ranks_;
  std::set<std::int64_t> with_series_;  // ranks with series in at least one run
  std::map<std::pair<TrainingPhase, std::string>, QuantitySummary> quantities_;
};

/// The statistics that the user chose; all if none were given.
class ChosenStatistics {
 public:
  explicit ChosenStatistics(const std::vector<std::string>& wanted)
      : wanted_(wanted), missing_(wanted.begin(), wanted.end()) {}

  TakesStatistic filter() const;
  void take(const TrackPairs& group);
  /// UsageError for a chosen statistic that no series has.
  void check_names() const;

 private:
  std::vector<std::string> wanted_;
  std::set<std::string> missing_;
};

MonitorComparison compare(const MonitorCompareOptions& options, Progress* progress);

}  // namespace msprobe::monitor
