// SPDX-License-Identifier: Apache-2.0
#include "series/alert_record.hpp"

#include "support/json_writer.hpp"

namespace msprobe::series {

std::string alert_key(const AlertRecord& alert) {
  return alert.tag + "_step_" + std::to_string(alert.step) + "_call_" + std::to_string(alert.call_id);
}

void write_alert_members(JsonWriter& json, const AlertRecord& alert,
                         const std::vector<std::int64_t>* group_mates) {
  json.member("rank", alert.rank);
  json.member("step", alert.step);
  json.member("micro_step", alert.micro_step);
  json.member("pp_stage", alert.pp_stage);
  json.member("vpp_stage", alert.vpp_stage);
  json.member("call_id", alert.call_id);
  json.member("tag_name", alert.tag);
  json.member("message", alert.message);
  json.key("group_mates");
  if (group_mates != nullptr) {
    json.value(*group_mates);
  } else {
    json.null();
  }
}

}  // namespace msprobe::series
