// SPDX-License-Identifier: Apache-2.0
// One alert in the form of anomaly.json, whichever program writes that file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe {
class JsonWriter;
}

namespace msprobe::series {

struct AlertRecord {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  std::int64_t micro_step = 0;
  std::int64_t pp_stage = 0;
  std::int64_t vpp_stage = 0;
  std::int64_t call_id = -1;  // the place of the series in the step's order; -1: unknown
  std::string tag;            // {stage}:{name}[:{micro step}]/rank{r}/{task}
  std::string message;
};

/// `{tag}_step_{step}_call_{call}`
std::string alert_key(const AlertRecord& alert);

/// Writes the members into the open object. `group_mates`: the ranks of this rank's group; null if unknown.
void write_alert_members(JsonWriter& json, const AlertRecord& alert,
                         const std::vector<std::int64_t>* group_mates);

}  // namespace msprobe::series
