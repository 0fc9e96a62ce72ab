// SPDX-License-Identifier: Apache-2.0
#include "grad_compare/similarity_table.hpp"

namespace msprobe::grad_compare {

SimilarityTable::SimilarityTable(const RankSimilarity& rank) : rank_(rank), columns_{"step"} {
  for (const std::uint64_t step : rank.steps) columns_.push_back(std::to_string(step));
}

void SimilarityTable::row(std::size_t index, std::vector<report::Cell>& cells,
                          report::Scratch& scratch) const {
  cells.clear();
  scratch.clear();
  if (index == rank_.parameters.size()) {
    cells.emplace_back(report::Text{"summary"});
    for (const EqualShare& share : rank_.summary) cells.emplace_back(share.value());
    return;
  }
  cells.emplace_back(report::Text{rank_.parameters[index]});
  for (const std::optional<EqualShare>& share : rank_.shares[index])
    cells.push_back(share ? report::Cell(share->value()) : report::Cell(report::Text{}));
}

}  // namespace msprobe::grad_compare
