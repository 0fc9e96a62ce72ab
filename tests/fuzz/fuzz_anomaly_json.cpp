// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "monitor/analyze/alert_file.hpp"
#include "monitor/analyze/ranking.hpp"

FUZZ_READER(anomaly_json)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  using namespace msprobe::monitor;
  std::vector<Alert> alerts;
  std::vector<std::string> warnings;
  read_alerts(*fuzz_input(data, size), alerts, warnings);
  const std::size_t count = alerts.size();
  rank_alerts(alerts);
  if (alerts.size() != count) throw std::logic_error("alerts were lost");
  // The file that the command writes can be read again.
  std::vector<Alert> again;
  const std::string text = alerts_json(alerts);
  read_alerts(*memory_source(text), again, warnings);
  if (again.size() != count) throw std::logic_error("alerts were lost in their file");
}
