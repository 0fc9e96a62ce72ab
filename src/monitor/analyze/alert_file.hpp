// SPDX-License-Identifier: Apache-2.0
// The alerts that a monitor wrote down while it ran: anomaly_detected/rank{r}/anomaly.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "series/alert_record.hpp"
#include "support/byte_source.hpp"

namespace msprobe {
class JsonWriter;
}

namespace msprobe::monitor {

struct Alert : series::AlertRecord {
  std::string key;  // in its file
  std::optional<std::vector<std::int64_t>> group_mates;

  /// The part of the tag after its last slash.
  std::string_view task() const;
};

/// Appends the alerts of a file in its order; records of another form are left out, and `warnings` say so.
/// How many were left out. FormatError for broken JSON.
std::uint64_t read_alerts(const ByteSource& file, std::vector<Alert>& alerts,
                          std::vector<std::string>& warnings);

/// The next member of an object of alerts.
void write_alert(JsonWriter& json, std::string_view key, const Alert& alert);

/// The text of an anomaly.json, with a unique key for each alert.
std::string alerts_json(const std::vector<Alert>& alerts);

}  // namespace msprobe::monitor
