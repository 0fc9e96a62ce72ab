// SPDX-License-Identifier: Apache-2.0
// Results that are made row by row with cells of their own: the comparisons beside dump.json's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "compare/reports/summary.hpp"
#include "compare/result/result.hpp"
#include "report/table.hpp"

namespace msprobe::compare {

/// A cell that owns its text.
using ListedCell = std::variant<std::string, double, std::int64_t, bool>;

struct ListedRow {
  std::string name;  // for the summary
  Verdict verdict = Verdict::pass;
  std::string reason;   // why it is not a pass
  std::string measure;  // the number that tells most
  double weight = 0;    // larger is worse
  bool target_only = false;
  bool golden_only = false;
  bool unreadable = false;
  std::vector<ListedCell> cells;
};

struct RowList {
  std::vector<std::string> columns;
  std::vector<ListedRow> rows;
};

/// `list` must outlive the table.
std::unique_ptr<report::Table> list_table(const RowList& list);

/// Counts, the first bad row, the worst ones; label, sides and files are left to the caller.
RankSummary summarize(const RowList& list, Mode mode);

}  // namespace msprobe::compare
