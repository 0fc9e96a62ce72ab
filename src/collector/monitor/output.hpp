// SPDX-License-Identifier: Apache-2.0
// The thread that writes the steps, one after the other.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "collector/monitor/anomaly_file.hpp"
#include "collector/monitor/batch.hpp"
#include "collector/monitor/csv_file.hpp"
#include "collector/monitor/settings.hpp"

namespace msprobe::collector::monitor {

class Output {
 public:
  /// Creates nothing until the first step comes.
  Output(std::string folder, const std::string& anomaly_folder);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// Waits until the step before is in its files: no more than two are held, and a killed process loses one.
  void submit(Batch batch);
  void flush();
  /// Why something could not be written: once, until writing has succeeded again.
  std::optional<std::string> take_failure();

 private:
  void start_thread();
  void work();
  void write(const Batch& batch);
  void write_csv(const Batch& batch);
  void write_events(const Batch& batch);

  const std::string folder_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Batch> waiting_;
  bool busy_ = false;
  bool stop_ = false;
  bool failing_ = false;
  std::optional<std::string> failure_;

  // Of the thread.
  bool has_folder_ = false;
  std::shared_ptr<const Settings> settings_;  // that the files were opened for
  std::map<std::string, CsvSeries, std::less<>> files_;
  AppendedFile events_;
  AnomalyFile anomalies_;

  bool tried_thread_ = false;
  std::thread thread_;
};

}  // namespace msprobe::collector::monitor
