// SPDX-License-Identifier: Apache-2.0
// Tensor mode: opens the files behind the rows and measures them, entry by entry where somebody may stop
// early.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "measuring/bytes_ahead.hpp"
#include "measuring/imports.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::measuring {

/// What rows were found to be in another place.
struct MeasuredRows {
  std::uint64_t rows = 0;   // of the whole result
  std::uint64_t first = 0;  // of these
  std::vector<TensorMetrics> metrics;
};

class TensorRows {
 public:
  /// The result has its rows, and gets room for their metrics. Both must outlive this.
  TensorRows(MeasuredRank& result, BytesAhead& bytes);

  /// The rows of an entry under test, once; and of those behind it, while there are threads without work. A
  /// pair that cannot be read or does not fit is a row that says so.
  void measure_entry(std::uint32_t target_api);
  /// One of so many ranges of rows that read about as much.
  MeasuredRows measure_range(std::size_t part, std::size_t parts);
  /// What was measured elsewhere is not measured again.
  void take(MeasuredRows&& measured);
  /// All that is left of the entries that were reached, and marks the rows whose ranks' copies differ.
  /// `print_rows` logs one line a row.
  void finish(bool print_rows);

 private:
  void find_groups(std::uint32_t target_api);
  void take_entry(std::uint32_t target_api, std::vector<std::uint32_t>& rows);
  void measure(const std::vector<std::uint32_t>& rows);
  TensorMetrics measured(const Pair& row) const;
  TensorMetrics measured_joined(const Pair& row) const;
  struct Reading;
  formats::StoredTensor open_item(FactorSide side, std::uint32_t index, Reading& reading) const;
  formats::StoredTensor with_factors(FactorSide side, const Item& item, const formats::StoredTensor& tensor,
                                     Reading& reading) const;
  TensorMetrics compared(const formats::StoredTensor& target, const formats::StoredTensor& golden,
                         Reading&& reading) const;
  char copies_that_differ(const Pair& row) const;  // bits: on which sides
  bool take_for_own(const Pair& row);
  std::uint64_t bytes_of(const Pair& row) const;
  std::optional<std::int64_t> valid_rows(const Item& item) const;

  MeasuredRank& result_;
  BytesAhead& bytes_;
  std::vector<char> copies_differ_;                             // by row, of merged ranks
  std::vector<bool> taken_;                                     // by row; empty: none is
  std::vector<bool> done_;                                      // by entry under test
  std::vector<std::uint32_t> first_row_;                        // by entry, and the end: places in rows_
  std::vector<std::uint32_t> rows_;                             // by entry under test
  std::unordered_map<std::uint32_t, std::int64_t> group_rows_;  // by entry under test
  std::map<std::uint32_t, std::string> groups_unread_;          // and why they are not known
};

}  // namespace msprobe::measuring
