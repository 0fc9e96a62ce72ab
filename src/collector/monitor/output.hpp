// SPDX-License-Identifier: Apache-2.0
// The files of a rank. A step that has ended is in them: programs read them right after their optimizer has
// stepped, and the rows of a large model take only a few milliseconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "collector/monitor/anomaly_file.hpp"
#include "collector/monitor/batch.hpp"
#include "collector/monitor/csv_file.hpp"
#include "collector/monitor/settings.hpp"

namespace msprobe::collector::monitor {

class MonitorOutput {
 public:
  /// Creates nothing until the first step arrives.
  MonitorOutput(std::string folder, const std::string& anomaly_folder);

  /// Returns the reason if something could not be written; only once, until writing has succeeded again.
  std::optional<std::string> write(const Batch& batch);

 private:
  void write_files(const Batch& batch);
  void write_csv(const Batch& batch);
  void write_events(const Batch& batch);

  const std::string folder_;
  bool has_folder_ = false;
  bool failing_ = false;
  std::shared_ptr<const Settings> settings_;  // that the files were opened for
  std::map<std::string, CsvSeries, std::less<>> files_;
  AppendedFile events_;
  AnomalyFile anomalies_;
};

}  // namespace msprobe::collector::monitor
