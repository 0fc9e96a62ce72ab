// SPDX-License-Identifier: Apache-2.0
// The alerts that a monitor wrote down while it ran: anomaly_detected/rank{r}/anomaly.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe {
class JsonWriter;
}

namespace msprobe::monitor {

struct Alert {
  std::string key;  // in its file
  std::int64_t rank = 0;
  std::int64_t step = 0;
  std::int64_t micro_step = 0;
  std::int64_t pp_stage = 0;
  std::int64_t vpp_stage = 0;
  std::int64_t call_id = 0;  // in which order the series of a step were met; -1: not known
  std::string tag;           // {stage}:{name}[:{micro step}]/rank{r}/{task}
  std::string message;
  std::optional<std::vector<std::int64_t>> group_mates;

  /// What stands behind the last slash of the tag.
  std::string_view task() const;
};

/// Appends the alerts of a file in its order; a record that is none, and with `strict` one with a field that
/// the Python tool does not know, is left out and told in `warnings`. FormatError for broken JSON.
void read_alerts(const ByteSource& file, bool strict, std::vector<Alert>& alerts,
                 std::vector<std::string>& warnings);

/// `{tag}_step_{step}_call_{call}`
std::string alert_key(const Alert& alert);

/// The next member of an object of alerts.
void write_alert(JsonWriter& json, std::string_view key, const Alert& alert);

/// As anomaly.json has them, each under a key of its own.
std::string alerts_json(const std::vector<Alert>& alerts);

}  // namespace msprobe::monitor
