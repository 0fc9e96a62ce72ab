// SPDX-License-Identifier: Apache-2.0
// anomaly.json of a rank: it grows, and is whole whenever a program reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/growing_file.hpp"
#include "series/alert_record.hpp"

namespace msprobe::collector::monitor {

/// One broken rule.
struct Hit : series::AlertRecord {
  std::string rule;
  std::string statistic;
  std::string value;  // as the message quotes it
  double mean = 0;
  bool first_of_tag = true;
};

/// The member of the file; `group_mates` is a JSON list.
std::string anomaly_member(const Hit& hit, const std::vector<std::int64_t>& group_mates);
/// All hits, as a JSON list that also names the rule, the statistic, the value and the mean.
std::string hits_json(const std::vector<Hit>& hits, const std::vector<std::int64_t>& group_mates);

class AnomalyFile {
 public:
  /// `folder` is that of the rank; the first append() makes it.
  explicit AnomalyFile(std::string folder);
  /// Removes the file of an earlier run, whose contents are not findings of this run.
  void remove_old() noexcept;
  /// The first call writes the file even without members: an empty one says that there was no alert. Throws
  /// IoError; members that could not be written are kept for the next time. Throws Error, once, when the file
  /// is full.
  void append(const std::vector<std::string>& members);

 private:
  std::string folder_;
  GrowingFile file_;
  std::uint64_t count_ = 0;
  bool begun_ = false;
};

}  // namespace msprobe::collector::monitor
