// SPDX-License-Identifier: Apache-2.0
#include "monitor/analyze/alert_file.hpp"

#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "support/interrupt.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

using dump::Entry;
using dump::NodeKind;

constexpr std::size_t kMostWarnings = 5;  // a file may hold nothing but nonsense

/// One record in the making.
class RecordReader {
 public:
  explicit RecordReader(const Entry& entry) : entry_(entry) {}

  /// Reads an alert. Returns the reason why the record is not an alert; empty if it is one.
  std::string read(Alert& alert) {
    if (!entry_.is(0, NodeKind::object)) return "is not an object";
    std::string problem;
    entry_.children(0, [&](Entry::Index child) {
      if (problem.empty() && !field(alert, child))
        problem = "has a field '" + display(entry_.key(child)) + "' " + reason_;
    });
    return problem;
  }

 private:
  bool field(Alert& alert, Entry::Index node) {
    const std::array<std::pair<std::string_view, std::int64_t*>, 6> numbers = {{
        {"rank", &alert.rank},
        {"step", &alert.step},
        {"micro_step", &alert.micro_step},
        {"pp_stage", &alert.pp_stage},
        {"vpp_stage", &alert.vpp_stage},
        {"call_id", &alert.call_id},
    }};
    const std::string_view key = entry_.key(node);
    for (const auto& [name, value] : numbers) {
      if (key == name) return number(node, *value);
    }
    if (key == "tag_name") return text(node, alert.tag);
    if (key == "message") return text(node, alert.message);
    if (key == "group_mates") return mates(alert, node);
    return true;  // other tools may write more fields
  }

  bool number(Entry::Index node, std::int64_t& value) {
    const auto read = entry_.integer(node);
    reason_ = "that is not a whole number";
    if (read) value = *read;
    return read.has_value();
  }

  bool text(Entry::Index node, std::string& value) {
    reason_ = "that is not text";
    if (!entry_.is(node, NodeKind::string)) return false;
    value = entry_.text(node);
    return true;
  }

  bool mates(Alert& alert, Entry::Index node) {
    reason_ = "that is not a list of ranks";
    if (entry_.is(node, NodeKind::null)) return true;
    if (!entry_.is(node, NodeKind::array)) return false;
    bool whole = true;
    auto& ranks = alert.group_mates.emplace();
    entry_.children(node, [&](Entry::Index child) {
      const auto rank = entry_.integer(child);
      if (rank) ranks.push_back(*rank);
      whole &= rank.has_value();
    });
    return whole;
  }

  const Entry& entry_;
  std::string reason_;
};

}  // namespace

std::string_view Alert::task() const {
  const std::size_t slash = tag.rfind('/');
  return slash == std::string::npos ? std::string_view(tag) : std::string_view(tag).substr(slash + 1);
}

std::uint64_t read_alerts(const ByteSource& file, std::vector<Alert>& alerts,
                          std::vector<std::string>& warnings) {
  dump::MemberStream stream(file);
  stream.enter();
  Entry entry;
  std::string key;
  std::uint64_t left_out = 0;
  while (stream.next(key)) {
    check_interrupt();
    stream.entry(entry, key);
    Alert alert;
    alert.call_id = 0;  // missing members of a record are 0
    const std::string problem = RecordReader(entry).read(alert);
    if (problem.empty()) {
      alert.key = key;
      alerts.push_back(std::move(alert));
    } else if (++left_out <= kMostWarnings) {
      warnings.push_back(display(file.name()) + ": '" + display(key) + "' " + problem + ", and was skipped");
    }
  }
  if (left_out > kMostWarnings)
    warnings.push_back(display(file.name()) + ": " + human_count(left_out - kMostWarnings) +
                       " more records are not alerts");
  return left_out;
}

void write_alert(JsonWriter& json, std::string_view key, const Alert& alert) {
  json.open_object(key);
  series::write_alert_members(json, alert, alert.group_mates ? &*alert.group_mates : nullptr);
  json.close();
}

std::string alerts_json(const std::vector<Alert>& alerts) {
  JsonWriter json({.indent = 1});
  std::set<std::string> keys;
  json.open_object();
  for (const Alert& alert : alerts) {
    const std::string plain = series::alert_key(alert);
    std::string key = alert.key.starts_with(plain) ? alert.key : plain;
    for (int i = 2; !keys.insert(key).second; ++i) key = plain + "_" + std::to_string(i);
    write_alert(json, key, alert);
  }
  json.close();
  return json.take();
}

}  // namespace msprobe::monitor
