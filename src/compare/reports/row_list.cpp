// SPDX-License-Identifier: Apache-2.0
#include "compare/reports/row_list.hpp"

#include <algorithm>
#include <optional>

#include "compare/reports/severity.hpp"

namespace msprobe::compare {
namespace {

class ListTable final : public report::Table {
 public:
  explicit ListTable(const RowList& list) : list_(list) {}

  const std::vector<std::string>& columns() const override { return list_.columns; }
  std::size_t rows() const override { return list_.rows.size(); }

  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    for (const ListedCell& cell : list_.rows[index].cells) {
      if (const auto* text = std::get_if<std::string>(&cell)) {
        cells.emplace_back(report::Text{*text});
      } else if (const auto* real = std::get_if<double>(&cell)) {
        cells.emplace_back(*real);
      } else if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
        cells.emplace_back(*integer);
      } else {
        cells.emplace_back(std::get<bool>(cell));
      }
    }
  }

  report::Severity severity(std::size_t index) const override {
    return severity_of(list_.rows[index].verdict);
  }

 private:
  const RowList& list_;
};

NotedRow note(const RowList& list, std::size_t index) {
  const ListedRow& row = list.rows[index];
  NotedRow noted;
  noted.name = row.name;
  noted.verdict = row.verdict;
  noted.reason = row.reason;
  noted.measure = row.measure;
  noted.weight = row.weight;
  noted.index = index;
  return noted;
}

}  // namespace

std::unique_ptr<report::Table> list_table(const RowList& list) {
  return std::make_unique<ListTable>(list);
}

RankSummary summarize(const RowList& list, Mode mode) {
  RankSummary summary;
  summary.mode = mode;
  summary.rows = list.rows.size();
  std::optional<std::size_t> first;
  std::vector<std::size_t> bad;
  for (std::size_t i = 0; i < list.rows.size(); ++i) {
    const ListedRow& row = list.rows[i];
    summary.unmatched += row.target_only ? 1 : 0;
    summary.golden_only += row.golden_only ? 1 : 0;
    summary.unreadable += row.unreadable ? 1 : 0;
    if (row.verdict == Verdict::pass) continue;
    ++(row.verdict == Verdict::error ? summary.errors : summary.warnings);
    if (!first || row.verdict > list.rows[*first].verdict) first = i;
    bad.push_back(i);
  }
  if (first) summary.first_bad = note(list, *first);
  const auto worse = [&](std::size_t a, std::size_t b) {
    const ListedRow& left = list.rows[a];
    const ListedRow& right = list.rows[b];
    if (left.verdict != right.verdict) return left.verdict > right.verdict;
    if (left.weight != right.weight) return left.weight > right.weight;
    return a < b;
  };
  const std::size_t kept = std::min(bad.size(), kWorstRows);
  std::partial_sort(bad.begin(), bad.begin() + static_cast<std::ptrdiff_t>(kept), bad.end(), worse);
  for (std::size_t i = 0; i < kept; ++i) summary.worst.push_back(note(list, bad[i]));
  return summary;
}

}  // namespace msprobe::compare
