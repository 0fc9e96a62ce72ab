// SPDX-License-Identifier: Apache-2.0
// The cells of a pair of ranks: the Python tool's columns (docs/formats.md, "The table of compare").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/side.hpp"
#include "report/table.hpp"
#include "verdict/result.hpp"

namespace msprobe::verdict {

inline constexpr std::array<const char*, dump::kStatistics> kDifferenceNames = {"Max diff", "Min diff",
                                                                                "Mean diff", "L2norm diff"};
inline constexpr std::array<const char*, dump::kStatistics> kRelativeNames = {
    "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"};
inline constexpr std::array<const char*, measuring::kMetrics> kMetricNames = {"Cosine",
                                                                              "EucDist",
                                                                              "MaxAbsErr",
                                                                              "MaxRelativeErr",
                                                                              "One Thousandth Err Ratio",
                                                                              "Five Thousandths Err Ratio"};

/// The value of a metric, or the reason why it is missing.
report::Cell metric_cell(const measuring::TensorMetrics& metrics, std::size_t metric);

/// The contents of a column; statistics and metrics have a further number.
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
  error,     // relative to golden, of the whole tensor
  origin,    // where the error comes from
  evidence,  // on the first row of an entry with evidence
};

struct Column {
  Field field = Field::target_name;
  std::size_t which = 0;
  std::string title;
};

class RowCells {
 public:
  /// `result` must outlive the cells.
  explicit RowCells(const RankResult& result);

  const std::vector<Column>& columns() const { return columns_; }
  /// The place of a field among the cells; nothing if these rows do not have the field.
  std::optional<std::size_t> place_of(Field field, std::size_t which = 0) const;
  /// The cells in the form of report::Table.
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const;
  /// The cells that an item of golden would have if it were a separate row.
  void golden_item(std::uint32_t item, std::vector<report::Cell>& cells, report::Scratch& scratch) const;

 private:
  void add(Field field, std::string title, std::size_t which = 0);
  /// `index` is empty for an item without a row.
  void fill(const pairing::Pair& row, std::optional<std::size_t> index, std::vector<report::Cell>& cells,
            report::Scratch& scratch) const;
  void add_differences(const pairing::Pair& row, std::vector<report::Cell>& cells) const;
  void add_stack(std::optional<std::size_t> index, const dump::Item* item, std::vector<report::Cell>& cells,
                 report::Scratch& scratch) const;
  bool is_first_of_entry(std::size_t index) const;
  void add_diagnosis(const pairing::Pair& row, std::optional<std::size_t> index,
                     std::vector<report::Cell>& cells, report::Scratch& scratch) const;
  std::string_view checksum_text(const dump::Side& side, const dump::Item& item) const;

  const RankResult& result_;
  std::vector<Column> columns_;
};

}  // namespace msprobe::verdict
