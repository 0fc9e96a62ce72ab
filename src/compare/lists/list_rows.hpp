// SPDX-License-Identifier: Apache-2.0
// Rows that are made one by one with their own cells, for layouts without a dump.json.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "compare/rows.hpp"
#include "measuring/tensor_metrics.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

/// A cell that owns its text.
using ListedCell = std::variant<std::string, double, std::int64_t>;

struct ListedRow {
  std::string name;  // for the summary
  verdict::Verdict verdict = verdict::Verdict::pass;
  std::string reason;   // why it is not a pass
  std::string measure;  // the number that says most about the row
  double weight = 0;    // larger is worse
  bool target_only = false;
  bool golden_only = false;
  bool unreadable = false;
  bool unknown = false;  // no value in it is a number on both sides
  std::vector<ListedCell> cells;

  /// Sets measure and weight from the metrics.
  void weigh(const measuring::TensorMetrics& metrics);
};

struct RowList {
  std::vector<std::string> columns;
  std::vector<ListedRow> rows;

  /// Makes `count` rows by their numbers, in parallel; `progress` may be null.
  void fill(std::size_t count, Progress* progress, const char* what, const char* unit,
            const std::function<ListedRow(std::size_t)>& make);
};

class ListRows final : public Rows {
 public:
  ListRows(measuring::Mode mode, RowList list) : mode_(mode), list_(std::move(list)) {}

  const std::vector<std::string>& columns() const override { return list_.columns; }
  std::size_t rows() const override { return list_.rows.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override;

  measuring::Mode mode() const override { return mode_; }
  RowFacts facts(std::size_t index) const override;
  NotedRow note(std::size_t index) const override;

 private:
  measuring::Mode mode_;
  RowList list_;
};

}  // namespace msprobe::compare
