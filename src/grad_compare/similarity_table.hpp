// SPDX-License-Identifier: Apache-2.0
// similarities.csv: one row per parameter, one column per step, and the row `summary` for all parameters.
#pragma once

#include <string>
#include <vector>

#include "grad_compare/similarity.hpp"
#include "report/table.hpp"

namespace msprobe::grad_compare {

class SimilarityTable final : public report::Table {
 public:
  /// `rank` must outlive the table.
  explicit SimilarityTable(const RankSimilarity& rank);

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return rank_.parameters.size() + 1; }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override;
  report::Severity severity(std::size_t) const override { return report::Severity::none; }

 private:
  const RankSimilarity& rank_;
  std::vector<std::string> columns_;
};

}  // namespace msprobe::grad_compare
