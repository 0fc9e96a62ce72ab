// SPDX-License-Identifier: Apache-2.0
// The chosen rows and columns of one rank's result.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "merge_result/config.hpp"
#include "merge_result/inputs.hpp"
#include "report/table.hpp"
#include "sheets/sheet.hpp"

namespace msprobe::merge_result {

struct RankValues {
  std::int64_t rank = 0;
  std::string left_out;                 // why it cannot be merged; otherwise empty
  bool unreadable = false;              // because it could not be read
  std::vector<std::string> not_found;   // of the configuration's apis
  std::vector<std::string> indices;     // columns that were taken
  std::vector<std::string_view> names;  // of the rows, in the order of the apis and of the result

  /// The cell of a row under an index.
  report::Cell cell(std::size_t index, std::size_t row, report::Scratch& scratch) const;

  struct RankValue {
    sheets::Cell::CellKind kind = sheets::Cell::CellKind::empty;
    bool maxima = false;  // both sides' maxima replace other cells: `npu` and `bench` are values
    std::uint32_t npu = 0;
    std::uint32_t bench = 0;
    double number = 0;
    std::string_view text;
  };
  std::string text_of(const RankValue& value, bool real) const;
  /// A copy of the text in `memory`.
  std::string_view keep(std::string_view text);

  std::vector<RankValue> values;                    // a repeated text is stored once
  std::vector<std::vector<std::uint32_t>> columns;  // by index: the values of the rows
  /// A workbook does not distinguish 5 from 5.0. The Python tool reads a column as real numbers if it has
  /// only numbers and not all are whole.
  bool npu_real = false;
  bool bench_real = false;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory =
      std::make_unique<std::pmr::monotonic_buffer_resource>();  // of the texts
};

/// Reads a rank's files. The result reports their errors.
RankValues read_rank(const RankFiles& files, const MergeConfig& config);

}  // namespace msprobe::merge_result
