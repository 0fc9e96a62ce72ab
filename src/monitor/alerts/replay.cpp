// SPDX-License-Identifier: Apache-2.0
#include "monitor/alerts/replay.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "monitor/analyze/ranking.hpp"
#include "monitor/input/tracks.hpp"
#include "monitor/input/tree.hpp"
#include "series/quantities.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

/// As a monitor calls the series while a training runs.
std::string tag_of(const Track& track, std::int64_t rank) {
  if (track.quantity == "comm")
    return track.name.find('/') == std::string::npos ? fmt::format("{}/rank{}/comm", track.name, rank)
                                                     : track.name;
  const series::Quantity* known = series::find_quantity(track.quantity);
  std::string tag = fmt::format("{}:", track.stage.value_or(0)) + track.name;
  if (track.micro_step) tag += fmt::format(":{}", *track.micro_step);
  return tag + fmt::format("/rank{}/", rank) +
         std::string(known == nullptr ? std::string_view(track.quantity) : known->task);
}

/// The alerts of one rank: the first ones, and all of them in a file.
class RankReplay {
 public:
  RankReplay(const RankFolder& rank, const ReplayOptions& options) : rank_(rank), options_(options) {
    if (options.output.empty()) return;
    const std::string folder = fmt::format("{}/rank{}", options.output, rank.rank);
    create_directories(folder);
    file_.emplace(folder + "/anomaly.json");
    json_.open_object();
  }

  Replay run() {
    for (const std::string& prefix : rank_.prefixes()) {
      Tracks tracks = read_tracks(rank_, prefix);
      for (std::string& warning : tracks.warnings)
        replay_.warnings.push_back(fmt::format("rank {}, {}: {}", rank_.rank, display(prefix), warning));
      std::move(tracks.problems.begin(), tracks.problems.end(), std::back_inserter(replay_.problems));
      miss_unread(tracks, 1, replay_.coverage);
      std::int64_t call = 0;
      for (const Track& track : tracks.tracks) judge(tracks.statistics, track, call++);
    }
    if (replay_.coverage.asked() == 0)
      replay_.coverage.miss("there are no values of the rank", fmt::format("rank {}", rank_.rank));
    keep_first();
    if (file_) {
      json_.close();
      flush();
      file_->commit();
    }
    return std::move(replay_);
  }

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 20;
  static constexpr std::size_t kKept =
      1000;  // more than are asked for, between two looks at which are the first

  void judge(const std::vector<std::string>& statistics, const Track& track, std::int64_t call) {
    std::vector<series::RunningMean> means(statistics.size());
    std::optional<std::string> tag;
    bool judged = false;
    std::optional<std::int64_t> silent;  // the first step without a finite number, and so without a verdict
    for (std::size_t i = 0; i < track.steps.size(); ++i) {
      bool first = true;
      bool judged_here = false;
      bool finite = false;
      for (std::size_t k = 0; k < statistics.size(); ++k) {
        const double value = track.values[k][i];
        if (is_no_number(value)) continue;
        if (statistics[k] == "id" && std::isnan(value)) continue;  // only tensors without axes have one
        ++replay_.values;
        judged_here = judged_here || series::speaks_of(options_.rules, statistics[k], value, means[k]);
        finite = finite || (std::isfinite(value) && statistics[k] != "nans");
        const series::AlertRule* rule = series::first_broken(options_.rules, statistics[k], value, means[k]);
        const double history = means[k].value();
        means[k].add(value);
        if (rule == nullptr) continue;
        if (!tag) tag = tag_of(track, rank_.rank);
        Alert alert;
        alert.rank = rank_.rank;
        alert.step = track.steps[i];
        alert.micro_step = track.micro_step.value_or(0);
        alert.vpp_stage = track.stage.value_or(0);
        alert.call_id = track.quantity == "comm" ? -1 : call;
        alert.tag = *tag;
        alert.message = series::alert_message(
            *rule, *tag, statistics[k], static_cast<std::uint64_t>(alert.step), python_repr(value), history);
        alert.group_mates = {alert.rank};
        alert.key = series::alert_key(alert) + (std::exchange(first, false) ? "" : "_" + statistics[k]);
        add(std::move(alert));
      }
      judged = judged || judged_here;
      if (!judged_here && !finite && !silent) silent = track.steps[i];
    }
    if (track.steps.empty()) return;
    Coverage& coverage = replay_.coverage;
    if (!judged) {
      coverage.miss(
          "no rule applies to any of its values (AnomalyTurbulence applies to norms and means from the "
          "second step on, AnomalyNan to all but infinities and the column nans)",
          tag_of(track, rank_.rank));
    } else if (silent) {
      coverage.miss("NaN, infinite or empty at a step to which no rule applies",
                    fmt::format("{} at step {}", tag_of(track, rank_.rank), *silent));
    } else {
      ++coverage.compared;
    }
  }

  void add(Alert alert) {
    ++replay_.all;
    if (file_) write(alert);
    replay_.first.push_back(std::move(alert));
    if (replay_.first.size() >= options_.most + kKept) keep_first();
  }

  void keep_first() {
    rank_alerts(replay_.first);
    if (replay_.first.size() > options_.most) replay_.first.resize(options_.most);
  }

  void write(const Alert& alert) {
    write_alert(json_, alert.key, alert);
    if (json_.text().size() >= kFlushBytes) flush();
  }

  void flush() {
    file_->write(json_.text());
    json_.text().clear();
  }

  const RankFolder& rank_;
  const ReplayOptions& options_;
  Replay replay_;
  std::optional<OutputFile> file_;  // an empty object of a rank without alerts: it was judged
  JsonWriter json_{{.indent = 1}};
};

}  // namespace

Replay replay_alerts(const ReplayOptions& options, Progress* progress) {
  const MonitorTree tree = find_tree(options.input);
  std::vector<Replay> ranks(tree.ranks.size());
  if (progress != nullptr) progress->begin("judging", ranks.size(), "ranks");
  parallel_for(ranks.size(), [&](std::size_t i) {
    ranks[i] = RankReplay(tree.ranks[i], options).run();
    if (progress != nullptr) progress->advance();
  });
  if (progress != nullptr) progress->end();
  Replay replay;
  replay.warnings = tree.warnings;
  for (Replay& each : ranks) {
    replay.all += each.all;
    replay.values += each.values;
    replay.coverage.add(each.coverage);
    for (auto [from, to] :
         {std::pair(&each.warnings, &replay.warnings), std::pair(&each.problems, &replay.problems)})
      std::move(from->begin(), from->end(), std::back_inserter(*to));
    std::move(each.first.begin(), each.first.end(), std::back_inserter(replay.first));
  }
  rank_alerts(replay.first);
  if (replay.first.size() > options.most) replay.first.resize(options.most);
  return replay;
}

}  // namespace msprobe::monitor
