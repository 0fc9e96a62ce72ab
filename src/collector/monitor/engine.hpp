// SPDX-License-Identifier: Apache-2.0
// One monitor: the series of a rank, the window of steps, the alerts. All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/file_stamp.hpp"
#include "collector/forks.hpp"
#include "collector/monitor/anomaly_file.hpp"
#include "collector/monitor/batch.hpp"
#include "collector/monitor/output.hpp"
#include "collector/monitor/settings.hpp"
#include "collector/tensor_view.hpp"
#include "series/alert_rules.hpp"

namespace msprobe::collector::monitor {

struct EngineOptions {
  int layout = 1;
  std::int64_t rank = 0;
  std::int64_t pp_stage = 0;
  bool dynamic = false;
  bool distributed = false;
  std::string framework;  // "" : pytorch, or as the configuration of layout 2 says
  std::string output_dir;
  std::vector<std::int64_t> group_mates = {0};
};

/// Identifies a series; see msprobe_series.
struct SeriesKey {
  std::string quantity;
  std::int32_t stage = 0;
  std::int32_t micro_step = -1;
  std::string name;
  std::string scope;
};

struct StepResult {
  bool written = false;
  bool finished = false;
  std::uint32_t alerts = 0;
  std::optional<std::string> failure;
};

enum class Reload : std::uint8_t { nothing, started, stopped };

class Engine {
 public:
  /// `path` is that of the configuration, or empty. Throws series::SettingError and FormatError.
  Engine(const std::string& text, const std::string& path, EngineOptions options);

  /// True in a child that was forked while the engine existed.
  bool orphaned() const { return process_.left(); }
  const std::atomic<int>& collecting() const { return collecting_; }

  /// Returns nothing for an unknown key.
  std::optional<std::string> setting(std::string_view key);
  void set_statistics(const Json& names);
  void set_rank(std::int64_t rank);
  void set_step(std::uint64_t step);

  std::uint32_t add_series(const SeriesKey& key);
  /// Returns false outside of the window. `dtype`: "" for the usual text of the type.
  bool observe(std::uint32_t id, const TensorView& view, std::string dtype);
  bool observe(std::uint32_t id, const Measured& measured, std::optional<std::uint64_t> below,
               std::vector<std::int64_t> shape, std::optional<tensor::DType> dtype, std::string dtype_text);
  bool observe_values(std::uint32_t id, std::vector<double> values);
  bool absent(std::uint32_t id);
  /// Returns nothing if the series has no value in this step.
  std::optional<std::string> value(std::uint32_t id);

  StepResult end_step();
  std::string hits();
  Reload reload();

 private:
  struct EngineSeries {
    SeriesInfo info;
    std::uint64_t step_mark = 0;  // of the step for which the series has a row
    std::size_t row = 0;
    std::vector<series::RunningMean> means;  // by column
  };

  void apply(Settings settings);
  void update_collecting();
  std::optional<double> eps() const;
  bool wants(std::uint64_t step) const;
  std::string dtype_text(tensor::DType dtype) const;
  bool hold(std::uint32_t id, Observation observation);
  void judge_row(const SeriesRow& row, EngineSeries& series);
  const std::vector<MonitorStatistic>& statistics_of(const SeriesInfo& info) const;
  void finish_dynamic();
  MonitorOutput& output();
  std::string base_folder() const;
  EngineSeries& series_of(std::uint32_t id);

  const EngineOptions options_;
  const std::string path_;
  const OwnProcess process_;

  std::mutex mutex_;
  std::shared_ptr<const Settings> settings_;
  std::atomic<double> eps_{1e-8};  // NaN: no series counts zeros
  std::atomic<int> collecting_{0};
  std::int64_t rank_;
  bool active_ = true;  // dynamic mode: switched on
  bool told_finished_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t collected_ = 0;
  FileStamp stamp_;  // of the configuration, dynamic mode

  std::deque<EngineSeries> series_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<SeriesRow> rows_;  // of the current step
  std::vector<std::uint32_t> row_series_;
  std::uint64_t mark_ = 1;
  std::uint32_t calls_ = 0;
  std::vector<Hit> hits_;

  std::string folder_;
  std::unique_ptr<MonitorOutput> output_;
};

}  // namespace msprobe::collector::monitor
