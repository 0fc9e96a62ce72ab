// SPDX-License-Identifier: Apache-2.0
// Tensor mode: opens the data files of the rows and measures them, entry by entry if the comparison may stop
// early.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dump/side.hpp"
#include "measuring/bytes_ahead.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::measuring {

/// Rows that another process measured.
struct MeasuredRows {
  std::uint64_t rows = 0;   // number of rows of the whole result
  std::uint64_t first = 0;  // number of the first row in `metrics`
  std::vector<TensorMetrics> metrics;
};

class TensorRows {
 public:
  /// The result must have its rows; the constructor adds room for their metrics. Both arguments must outlive
  /// this.
  TensorRows(MeasuredRank& result, BytesAhead& bytes);

  /// Measures the rows of an entry under test, unless that was done before, and rows of later entries while
  /// threads are idle. A pair that cannot be read or does not fit gets a row with the reason.
  void measure_entry(std::uint32_t target_api);
  /// Measures one of `parts` ranges of rows, which have about equal numbers of bytes.
  MeasuredRows measure_range(std::size_t part, std::size_t parts);
  /// Takes over rows that were measured elsewhere, so that they are not measured again.
  void take(MeasuredRows&& measured);
  /// Measures the remaining rows of the entries that were reached, and marks the rows whose ranks' copies
  /// differ. `print_rows` logs one line per row.
  void finish(bool print_rows);

 private:
  void find_groups(std::uint32_t target_api);
  void take_entry(std::uint32_t target_api, std::vector<std::uint32_t>& rows);
  void measure(const std::vector<std::uint32_t>& rows);
  TensorMetrics measured(const pairing::Pair& row) const;
  TensorMetrics measured_joined(const pairing::Pair& row) const;
  struct Reading;
  formats::StoredTensor open_item(FactorSide side, std::uint32_t index, Reading& reading) const;
  formats::StoredTensor with_factors(FactorSide side, const dump::Item& item,
                                     const formats::StoredTensor& tensor, Reading& reading) const;
  TensorMetrics compared(const formats::StoredTensor& target, const formats::StoredTensor& golden,
                         Reading&& reading) const;
  char copies_that_differ(const pairing::Pair& row) const;  // one bit for each side
  bool take_for_own(const pairing::Pair& row);
  std::uint64_t bytes_of(const pairing::Pair& row) const;
  std::optional<std::int64_t> valid_rows(const dump::Item& item) const;

  MeasuredRank& result_;
  BytesAhead& bytes_;
  std::vector<char> copies_differ_;       // by row, for merged ranks
  std::vector<bool> taken_;               // by row; empty: no row was taken
  std::vector<bool> done_;                // by entry under test
  std::vector<std::uint32_t> first_row_;  // by entry, with one more at the end: index in rows_
  std::vector<std::uint32_t> rows_;       // by entry under test
  std::unordered_map<std::uint32_t, std::int64_t> group_rows_;  // by entry under test
  std::map<std::uint32_t, std::string> groups_unread_;  // entries whose groups are unknown, and the reason
};

}  // namespace msprobe::measuring
