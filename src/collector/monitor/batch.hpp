// SPDX-License-Identifier: Apache-2.0
// Carries the rows of one step to the files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collector/monitor/observation.hpp"
#include "collector/monitor/settings.hpp"
#include "series/quantities.hpp"

namespace msprobe::collector::monitor {

/// The properties of a series. They never change and live as long as the engine.
struct SeriesInfo {
  const series::Quantity* quantity = nullptr;  // of layout 1
  std::size_t part = 0;                        // of layout 2: which of Settings::parts
  bool is_call = false;  // of communication: it has no stage, and calls in one step are folded
  std::int32_t stage = 0;
  std::int32_t micro_step = -1;  // -1: none
  std::string name;              // as its column has it
  std::string scope;             // of layout 2
  std::string tag;               // of alerts
  std::string event_tag;         // without the statistic at its end
};

struct SeriesRow {
  const SeriesInfo* series = nullptr;
  Observation held;
};

struct Batch {
  std::uint64_t step = 0;
  double wall_time = 0;                // seconds since 1970
  std::vector<SeriesRow> rows;         // in the order of arrival
  std::vector<std::string> anomalies;  // members of anomaly.json
  std::shared_ptr<const Settings> settings;
};

}  // namespace msprobe::collector::monitor
