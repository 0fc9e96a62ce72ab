// SPDX-License-Identifier: Apache-2.0
// The rows of one comparison in the form that every output takes, whatever the layout of the dumps. Rows are
// made on demand and by number, so that outputs read them in parallel, in any order, and format each cell
// once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measuring/choose_mode.hpp"
#include "report/table.hpp"
#include "verdict/finding.hpp"

namespace msprobe::compare {

class RankRows;

struct RowFacts {
  verdict::Verdict verdict = verdict::Verdict::pass;
  bool target_only = false;
  bool golden_only = false;
  bool unreadable = false;  // its tensors could not be read or compared
  bool left_out = false;    // it was not examined, as requested
  bool unknown = false;     // no statistic of its tensors is a number on both sides
  bool measured = false;    // a tensor of both sides was compared
};

/// The part of a row that the summary shows.
struct NotedRow {
  std::string name;
  verdict::Verdict verdict = verdict::Verdict::pass;
  std::string measure;  // the number that made it stand out, with its name
  std::string reason;
  double weight = 0;  // larger is worse
  std::size_t index = 0;
};

/// The colour that a verdict has in tables.
constexpr report::Severity severity_of(verdict::Verdict verdict) {
  return verdict == verdict::Verdict::error     ? report::Severity::error
         : verdict == verdict::Verdict::warning ? report::Severity::warning
                                                : report::Severity::none;
}

class Rows : public report::Table {
 public:
  virtual measuring::Mode mode() const = 0;
  virtual RowFacts facts(std::size_t row) const = 0;
  virtual NotedRow note(std::size_t row) const = 0;
  /// The number of items of the golden side without a row.
  virtual std::uint64_t golden_without_row() const { return 0; }
  /// The metrics by which rows can be weighed; if empty, only their verdicts count.
  virtual std::vector<std::string> metrics() const { return {}; }
  /// Weighs a row by one of these metrics alone. Returns false if the row lacks this metric, or if the metric
  /// shows no difference.
  virtual bool weigh(std::size_t /*row*/, std::size_t /*metric*/, NotedRow& /*noted*/) const { return false; }
  /// Returns itself if the rows are those of entries, for outputs that show entries; null if this layout has
  /// none.
  virtual const RankRows* of_entries() const { return nullptr; }

  report::Severity severity(std::size_t row) const final { return severity_of(facts(row).verdict); }
};

}  // namespace msprobe::compare
