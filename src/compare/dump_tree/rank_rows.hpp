// SPDX-License-Identifier: Apache-2.0
// The rows of a pair of ranks: the Python tool's columns (docs/formats.md, "The table of compare").
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/imports.hpp"
#include "compare/rows.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// What a column holds, and of which statistic or metric.
enum class Field : std::uint8_t {
  target_name,
  golden_name,
  target_dtype,
  golden_dtype,
  target_shape,
  golden_shape,
  target_grad,
  golden_grad,
  metric,      // tensor mode
  difference,  // statistics
  relative,    // statistics
  target_checksum,
  golden_checksum,
  target_statistic,
  golden_statistic,
  same_grad,
  verdict,
  messages,
  stack,
  data_names,
  error,     // relative to the reference, of the whole tensor
  origin,    // where the error comes from
  evidence,  // on the first row of an entry that is to blame
};

struct Column {
  Field field = Field::target_name;
  std::size_t which = 0;
  std::string title;
};

class RankRows final : public Rows {
 public:
  explicit RankRows(std::shared_ptr<const RankResult> result);

  /// What metrics() may give, of any mode, each once.
  static std::vector<std::string> all_metrics();

  /// Of a result that outlives them.
  static RankRows of(const RankResult& result);

  const std::vector<std::string>& columns() const override { return titles_; }
  /// The place of a field among the cells; nothing if these rows do not have it.
  std::optional<std::size_t> place_of(Field field, std::size_t which = 0) const;
  const std::vector<Column>& fields() const { return columns_; }
  std::size_t rows() const override { return result_->rows.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override;
  /// The cells that an item of the reference would have, were it a row of its own.
  void golden_item(std::uint32_t item, std::vector<report::Cell>& cells, report::Scratch& scratch) const;

  Mode mode() const override { return result_->mode; }
  RowFacts facts(std::size_t index) const override;
  NotedRow note(std::size_t index) const override;
  std::uint64_t golden_without_row() const override {
    return result_->consistent ? 0 : result_->golden_only;  // those have rows
  }
  std::vector<std::string> metrics() const override;
  bool weigh(std::size_t index, std::size_t metric, NotedRow& noted) const override;
  /// The findings of this rank, taken alone.
  std::optional<std::vector<std::string>> objects() const override;
  const RankRows* of_entries() const override { return this; }
  const RankResult& result() const { return *result_; }

 private:
  bool shares_no_statistic(const Pair& row) const;
  bool is_nan_throughout(std::size_t index) const;
  void add(Field field, std::string title, std::size_t which = 0);
  /// `index` is not there for what is no row.
  void fill(const Pair& row, std::optional<std::size_t> index, std::vector<report::Cell>& cells,
            report::Scratch& scratch) const;
  void add_metrics(const TensorMetrics& metrics, std::vector<report::Cell>& cells) const;
  void add_differences(const Pair& row, std::vector<report::Cell>& cells) const;
  void add_stack(std::optional<std::size_t> index, const Item* item, std::vector<report::Cell>& cells,
                 report::Scratch& scratch) const;
  bool is_first_of_entry(std::size_t index) const;
  void add_diagnosis(const Pair& row, std::optional<std::size_t> index, std::vector<report::Cell>& cells,
                     report::Scratch& scratch) const;
  std::string_view checksum_text(const Side& side, const Item& item) const;
  void measure_statistics(const Pair& row, NotedRow& noted) const;
  void measure_tensors(const TensorMetrics& metrics, NotedRow& noted) const;
  void measure(std::size_t index, std::optional<Rule> rule, NotedRow& noted) const;
  void describe_row(std::size_t index, NotedRow& noted) const;

  std::shared_ptr<const RankResult> result_;
  std::vector<Column> columns_;
  std::vector<std::string> titles_;
};

}  // namespace msprobe::compare
