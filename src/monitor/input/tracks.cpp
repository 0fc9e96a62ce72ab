// SPDX-License-Identifier: Apache-2.0
#include "monitor/input/tracks.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

/// Builds tracks, and finds them by their names.
class TrackCollector {
 public:
  explicit TrackCollector(const TakesStatistic& takes) : takes_(takes) {}

  void add(const std::vector<std::string>& statistics, const MonitorRow& row) {
    if (&statistics != seen_) map_statistics(statistics);
    Track& track = track_of(row);
    if (row.absent) return;
    if (track.steps.empty()) {
      track.shape = row.shape;
      track.dtype = row.dtype;
    }
    track.steps.push_back(row.step);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] == kNone) continue;
      if (track.values.size() <= places_[i]) track.values.resize(places_[i] + 1);
      std::vector<double>& values = track.values[places_[i]];
      values.resize(track.steps.size() - 1, no_number());
      values.push_back(row.values[i]);
    }
  }

  void next_file() { seen_ = nullptr; }

  Tracks finish() {
    std::uint64_t repeated = 0;
    for (Track& track : tracks_.tracks) repeated += complete(track);
    if (repeated > 0)
      tracks_.warnings.push_back(human_count(repeated) + (repeated == 1 ? " row has" : " rows have") +
                                 " a repeated step: the last one is used");
    return std::move(tracks_);
  }

  Tracks& so_far() { return tracks_; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  void map_statistics(const std::vector<std::string>& statistics) {
    seen_ = &statistics;
    places_.assign(statistics.size(), kNone);
    for (std::size_t i = 0; i < statistics.size(); ++i) {
      if (takes_ && !takes_(statistics[i])) continue;
      auto found = std::find(tracks_.statistics.begin(), tracks_.statistics.end(), statistics[i]);
      places_[i] = static_cast<std::size_t>(found - tracks_.statistics.begin());
      if (found == tracks_.statistics.end()) tracks_.statistics.push_back(statistics[i]);
    }
  }

  Track& track_of(const MonitorRow& row) {
    key_.assign(row.quantity);
    for (const auto& number : {row.stage, row.micro_step})
      key_ += number ? '/' + std::to_string(*number) : "/";
    key_ += '/';
    key_ += row.name;
    const auto [found, added] = numbers_.try_emplace(key_, tracks_.tracks.size());
    if (added)
      tracks_.tracks.push_back(
          {std::string(row.quantity), row.stage, std::string(row.name), row.micro_step, {}, {}, {}, {}});
    return tracks_.tracks[found->second];
  }

  /// Values for every statistic and step, by ascending steps; gives how many rows a later one replaced.
  std::uint64_t complete(Track& track) const {
    track.values.resize(tracks_.statistics.size());
    for (std::vector<double>& values : track.values) values.resize(track.steps.size(), no_number());
    if (std::adjacent_find(track.steps.begin(), track.steps.end(), std::greater_equal<>()) ==
        track.steps.end())
      return 0;
    std::vector<std::size_t> order(track.steps.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return track.steps[a] < track.steps[b]; });
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i + 1 == order.size() || track.steps[order[i]] != track.steps[order[i + 1]])
        kept.push_back(order[i]);
    }
    const auto choose = [&](auto& all) {
      std::remove_reference_t<decltype(all)> chosen;
      chosen.reserve(kept.size());
      for (const std::size_t i : kept) chosen.push_back(all[i]);
      all = std::move(chosen);
    };
    choose(track.steps);
    for (std::vector<double>& values : track.values) choose(values);
    return order.size() - kept.size();
  }

  const TakesStatistic& takes_;
  Tracks tracks_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::string key_;
  const void* seen_ = nullptr;
  std::vector<std::size_t> places_;
};

}  // namespace

FileNotes visit_rows(const SeriesFile& file, const RowVisit& visit) {
  constexpr std::uint64_t kLook = 4096;  // rows between looks whether to stop
  FileNotes notes;
  std::unique_ptr<MonitorRows> rows;
  MonitorRow row;
  const auto reads = [&](const auto& step) {
    try {
      return step();
    } catch (const Error& error) {
      notes.problem = error.what();
    }
    return false;
  };
  if (!reads([&] { return rows = std::make_unique<MonitorRows>(open_file(file.path), file.prefix), true; }))
    return notes;
  for (std::uint64_t count = 0; reads([&] { return rows->next(row); }); ++count) {
    if (count % kLook == 0) check_interrupt();
    visit(rows->statistics(), row);
  }
  notes.left_out = rows->left_out();
  notes.warning = notes.left_out.sentence(file.path);
  return notes;
}

void miss_unread(const Tracks& tracks, std::size_t cells, Coverage& coverage) {
  for (const Coverage::Gap& gap : tracks.unread)
    coverage.miss(gap.reason, gap.first, gap.count * std::max<std::size_t>(cells, 1));
}

Tracks read_tracks(const RankFolder& folder, std::string_view prefix, const TakesStatistic& takes) {
  TrackCollector collector(takes);
  for (const SeriesFile& file : folder.files) {
    if (file.prefix != prefix) continue;
    collector.next_file();
    std::uint64_t without = 0;  // rows
    FileNotes notes =
        visit_rows(file, [&](const std::vector<std::string>& statistics, const MonitorRow& row) {
          collector.add(statistics, row);
          without += statistics.empty();
        });
    Tracks& tracks = collector.so_far();
    if (without > 0) tracks.unread.push_back({"their file has no column of numbers", file.path, without});
    if (notes.left_out.rows > 0) {
      tracks.unread.push_back({"rows do not fit under the header of their file",
                               file.path + ", " + notes.left_out.first, notes.left_out.rows});
      tracks.warnings.push_back(std::move(notes.warning));
    }
    if (!notes.problem.empty()) {
      tracks.unread.push_back({"the file could not be read to its end", file.path, 1});
      tracks.problems.push_back(std::move(notes.problem));
    }
  }
  return collector.finish();
}

}  // namespace msprobe::monitor
