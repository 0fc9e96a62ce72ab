// SPDX-License-Identifier: Apache-2.0
// The rows of a pair of ranks: their cells, and the facts that other outputs need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/rows.hpp"
#include "verdict/result.hpp"
#include "verdict/row_cells.hpp"

namespace msprobe::compare {

class RankRows final : public Rows {
 public:
  explicit RankRows(std::shared_ptr<const verdict::RankResult> result);

  /// All names that metrics() may return in any mode, each once.
  static std::vector<std::string> all_metrics();

  /// The rows of a result that outlives them.
  static RankRows of(const verdict::RankResult& result);

  const std::vector<std::string>& columns() const override { return titles_; }
  const verdict::RowCells& cells() const { return cells_; }
  std::size_t rows() const override { return result_->rows.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells_.row(index, cells, scratch);
  }

  measuring::Mode mode() const override { return result_->mode; }
  RowFacts facts(std::size_t index) const override;
  NotedRow note(std::size_t index) const override;
  std::uint64_t golden_without_row() const override {
    return result_->consistent ? 0 : result_->golden_only;  // those items have rows
  }
  std::vector<std::string> metrics() const override;
  bool weigh(std::size_t index, std::size_t metric, NotedRow& noted) const override;
  /// The findings of this rank alone.
  std::optional<std::vector<std::string>> objects() const override;
  const RankRows* of_entries() const override { return this; }
  const verdict::RankResult& result() const { return *result_; }

 private:
  void measure_statistics(const pairing::Pair& row, NotedRow& noted) const;
  void measure_tensors(const measuring::TensorMetrics& metrics, NotedRow& noted) const;
  void measure(std::size_t index, std::optional<verdict::RowRule> rule, NotedRow& noted) const;
  void describe_row(std::size_t index, NotedRow& noted) const;

  std::shared_ptr<const verdict::RankResult> result_;
  verdict::RowCells cells_;
  std::vector<std::string> titles_;
};

}  // namespace msprobe::compare
