// SPDX-License-Identifier: Apache-2.0
// One alert as anomaly.json has it, by whoever writes that file.
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
  std::int64_t call_id = -1;  // in which order the series of a step were met; -1: not known
  std::string tag;            // {stage}:{name}[:{micro step}]/rank{r}/{task}
  std::string message;
};

/// `{tag}_step_{step}_call_{call}`
std::string alert_key(const AlertRecord& alert);

/// Members of the object that is open. `group_mates`: the ranks of the group of this one; null where they are
/// not known.
void write_alert_members(JsonWriter& json, const AlertRecord& alert,
                         const std::vector<std::int64_t>* group_mates);

}  // namespace msprobe::series
