// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/anomaly_file.hpp"

#include <unistd.h>

#include <utility>

#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"

namespace msprobe::collector::monitor {
namespace {

// A training that is broken for good breaks rules in every step, and the file is rewritten each time. The
// first members show what happened.
constexpr std::uint64_t kMostMembers = 20'000;

}  // namespace

std::string anomaly_member(const Hit& hit, const std::vector<std::int64_t>& group_mates) {
  std::string key = series::alert_key(hit);
  // If several statistics of a series break rules, the first one keeps the short key.
  if (!hit.first_of_tag) key += "_" + hit.statistic;
  std::string member;
  append_json_string(member, key);
  member += ": ";
  JsonWriter json(JsonStyle{.indent = 1}, 1);
  json.open_object();
  series::write_alert_members(json, hit, &group_mates);
  json.close();
  return member + json.take();
}

std::string hits_json(const std::vector<Hit>& hits, const std::vector<std::int64_t>& group_mates) {
  JsonWriter json;
  json.open_list();
  for (const Hit& hit : hits) {
    json.element();
    json.open_object();
    json.member("rule", hit.rule);
    json.member("tag", hit.tag);
    json.member("op", hit.statistic);
    json.member("value", hit.value);
    json.member("mean", hit.mean);
    series::write_alert_members(json, hit, &group_mates);
    json.close();
  }
  json.close();
  return json.take();
}

AnomalyFile::AnomalyFile(std::string folder)
    : folder_(std::move(folder)), file_(folder_ + "/anomaly.json", "{", "", 1) {}

void AnomalyFile::remove_old() noexcept {
  ::unlink((folder_ + "/anomaly.json").c_str());
}

void AnomalyFile::append(const std::vector<std::string>& members) {
  if ((begun_ && members.empty()) || count_ >= kMostMembers) return;
  for (const std::string& member : members) {
    if (count_ >= kMostMembers) break;
    ++count_;
    file_.begin_member();
    file_.text() += member;
  }
  create_directories(folder_);
  file_.write({});
  begun_ = true;
  if (count_ >= kMostMembers)
    throw Error(folder_ + "/anomaly.json: holds " + std::to_string(kMostMembers) +
                " alerts; later ones are not added");
}

}  // namespace msprobe::collector::monitor
