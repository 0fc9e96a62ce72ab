// SPDX-License-Identifier: Apache-2.0
#include "compare/lists/list_rows.hpp"

namespace msprobe::compare {

void ListRows::row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const {
  struct ToCell {
    report::Cell operator()(const std::string& text) const { return report::Text{text}; }
    report::Cell operator()(double value) const { return value; }
    report::Cell operator()(std::int64_t value) const { return value; }
    report::Cell operator()(bool value) const { return value; }
  };
  cells.clear();
  scratch.clear();
  for (const ListedCell& cell : list_.rows[index].cells) cells.push_back(std::visit(ToCell{}, cell));
}

RowFacts ListRows::facts(std::size_t index) const {
  const ListedRow& row = list_.rows[index];
  return {row.verdict, row.target_only, row.golden_only, row.unreadable};
}

NotedRow ListRows::note(std::size_t index) const {
  const ListedRow& row = list_.rows[index];
  return {row.name, row.verdict, row.measure, row.reason, row.weight, index};
}

}  // namespace msprobe::compare
