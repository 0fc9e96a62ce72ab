// SPDX-License-Identifier: Apache-2.0
#include "compare/lists/list_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "support/parallel.hpp"
#include "support/progress.hpp"

namespace msprobe::compare {

void ListedRow::weigh(const measuring::TensorMetrics& metrics) {
  const measuring::Metric which = metrics.is_scalar ? measuring::kMaxRelative : measuring::kCosine;
  measure = fmt::format("{} {:.6g}", metrics.is_scalar ? "MaxRelativeErr" : "Cosine", metrics.value[which]);
  weight = metrics.is_scalar ? metrics.value[which] : 1 - metrics.value[which];
  if (std::isnan(weight)) weight = std::numeric_limits<double>::infinity();
}

void RowList::fill(std::size_t count, Progress* progress, const char* what, const char* unit,
                   const std::function<ListedRow(std::size_t)>& make) {
  rows.resize(count);
  if (progress != nullptr) progress->begin(what, count, unit);
  parallel_for(count, [&](std::size_t i) {
    rows[i] = make(i);
    if (progress != nullptr) progress->advance();
  });
}

void ListRows::row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const {
  cells.clear();
  scratch.clear();
  for (const ListedCell& cell : list_.rows[index].cells) {
    cells.push_back(std::visit(
        [](const auto& value) -> report::Cell {
          if constexpr (std::is_same_v<decltype(value), const std::string&>)
            return report::Text{value};
          else
            return value;
        },
        cell));
  }
}

RowFacts ListRows::facts(std::size_t index) const {
  const ListedRow& row = list_.rows[index];
  const bool measured = !row.target_only && !row.golden_only && !row.unreadable && !row.unknown;
  return {row.verdict, row.target_only, row.golden_only, row.unreadable, false, row.unknown, measured};
}

NotedRow ListRows::note(std::size_t index) const {
  const ListedRow& row = list_.rows[index];
  return {row.name, row.verdict, row.measure, row.reason, row.weight, index};
}

}  // namespace msprobe::compare
