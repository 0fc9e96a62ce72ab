// SPDX-License-Identifier: Apache-2.0
#include "monitor/csv2tb/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "monitor/input/tracks.hpp"
#include "series/event_file.hpp"
#include "support/folder.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEventName = "events.out.tfevents.";
constexpr std::size_t kFlushBytes = std::size_t{1} << 20;

/// Seconds since 1970.
std::int64_t written_at(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

/// As a monitor names its folders: the time eight hours east.
std::string folder_name(std::time_t now) {
  now += std::time_t{8} * 3600;
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%b%d_%H-%M-%S", &parts);
  return text;
}

/// All files of one prefix of a rank.
struct EventJob {
  const RankFolder* rank = nullptr;
  std::string prefix;
};

struct JobReport {
  std::uint64_t scalars = 0;
  std::set<std::string> files;
  std::set<std::string> quantities;  // that were there, asked for or not
  std::vector<std::string> warnings;
  std::vector<std::string> problems;
};

/// The event file of one quantity of a rank.
class EventWriter {
 public:
  /// `prefix`: of the csv files, as several may hold the same quantity.
  EventWriter(const std::string& folder, std::int64_t time, const std::string& prefix)
      : time_(static_cast<double>(time)),
        file_(fmt::format("{}/{}{:010}.{}", folder, kEventName, time, prefix)) {
    series::append_event_version(text_, time_);
  }

  void add(const Track& track, const std::vector<std::string>& suffixes) {
    const std::string tag = tag_of(track);
    std::vector<series::Scalar> scalars;
    for (std::size_t i = 0; i < track.steps.size(); ++i) {
      scalars.clear();
      for (std::size_t k = 0; k < suffixes.size(); ++k)
        scalars.push_back({tag, suffixes[k], series::event_value(track.values[k][i])});
      series::append_event(text_, time_, track.steps[i], scalars);
      if (text_.size() >= kFlushBytes) flush();
    }
  }

  /// Gives the file its name, which is returned.
  std::string commit() {
    flush();
    file_.commit();
    return file_.path();
  }

 private:
  static std::string tag_of(const Track& track) {
    std::string tag = track.stage ? fmt::format("vp{}:", *track.stage) : std::string();
    tag += valid_utf8(track.name);
    if (track.micro_step) tag += fmt::format(":micro{}", *track.micro_step);
    return tag;
  }

  void flush() {
    file_.write(text_);
    text_.clear();
  }

  double time_;
  OutputFile file_;
  std::string text_;
};

bool is_asked(const EventOptions& options, const std::string& quantity) {
  const std::vector<std::string>& asked = options.quantities;
  return asked.empty() || std::find(asked.begin(), asked.end(), quantity) != asked.end();
}

/// A quantity comes from a csv file's content and is the name of a folder here.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name != "." && name != ".." &&
         name.find('/') == std::string::npos && display(name) == name;
}

void run_job(const EventJob& job, const EventOptions& options, const std::string& output, JobReport& report) {
  Tracks tracks = read_tracks(*job.rank, job.prefix);
  report.problems = std::move(tracks.problems);
  for (std::string& warning : tracks.warnings)
    report.warnings.push_back(fmt::format("rank {}, {}: {}", job.rank->rank, display(job.prefix), warning));
  std::map<std::string, std::vector<const Track*>> by_quantity;
  for (const Track& track : tracks.tracks) {
    report.quantities.insert(track.quantity);
    if (!track.steps.empty() && is_asked(options, track.quantity))
      by_quantity[track.quantity].push_back(&track);
  }
  std::int64_t time = 0;
  for (const SeriesFile& file : job.rank->files) {
    if (file.prefix == job.prefix) time = std::max(time, written_at(file.path));
  }
  std::vector<std::string> suffixes;
  for (const std::string& statistic : tracks.statistics) suffixes.push_back("/" + valid_utf8(statistic));
  if (suffixes.empty()) return;
  for (const auto& [quantity, chosen] : by_quantity) {
    if (!is_plain_name(quantity)) {
      report.problems.push_back(
          fmt::format("rank {}: '{}' is not the name of a quantity", job.rank->rank, display(quantity)));
      continue;
    }
    const std::string folder = fmt::format("{}/rank{}/{}", output, job.rank->rank, quantity);
    create_directories(folder);
    EventWriter writer(folder, time, job.prefix);
    for (const Track* track : chosen) {
      writer.add(*track, suffixes);
      report.scalars += track->steps.size() * suffixes.size();
    }
    report.files.insert(writer.commit());
  }
}

/// Removes event files of earlier runs, because TensorBoard shows all event files of a folder together.
void remove_others(const std::set<std::string>& files) {
  std::set<std::string> folders;
  for (const std::string& file : files) folders.insert(fs::path(file).parent_path().string());
  for (const std::string& folder : folders) {
    for (const std::string& name : names_in(folder, WhichNames::regular_files)) {
      std::error_code ignored;
      const std::string path = folder + "/" + name;
      if (name.starts_with(kEventName) && !files.contains(path)) fs::remove(path, ignored);
    }
  }
}

}  // namespace

EventReport convert_to_events(const EventOptions& options, Progress* progress) {
  const MonitorTree tree = find_tree(options.input, options.times);
  EventReport report;
  report.warnings = tree.warnings;
  report.output = options.output.empty()
                      ? fmt::format("{}/{}-csv2tensorboard_by_step", options.input,
                                    claim_name(options.input, std::time(nullptr), folder_name))
                      : options.output;
  std::vector<EventJob> jobs;
  for (const RankFolder& rank : tree.ranks) {
    for (std::string& prefix : rank.prefixes()) jobs.push_back({&rank, std::move(prefix)});
  }
  std::vector<JobReport> done(jobs.size());
  if (progress != nullptr) progress->begin("converting", jobs.size(), "quantities");
  parallel_for(jobs.size(), [&](std::size_t i) {
    run_job(jobs[i], options, report.output, done[i]);
    if (progress != nullptr) progress->advance();
  });
  if (progress != nullptr) progress->end();
  std::set<std::string> known;
  std::set<std::string> files;
  for (JobReport& each : done) {
    report.scalars += each.scalars;
    files.merge(each.files);
    known.merge(each.quantities);
    std::move(each.warnings.begin(), each.warnings.end(), std::back_inserter(report.warnings));
    std::move(each.problems.begin(), each.problems.end(), std::back_inserter(report.problems));
  }
  remove_others(files);
  report.files = files.size();
  for (const std::string& asked : options.quantities) {
    if (!known.contains(asked)) report.problems.push_back("no rank has '" + display(asked) + "'");
  }
  return report;
}

}  // namespace msprobe::monitor
