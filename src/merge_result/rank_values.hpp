// SPDX-License-Identifier: Apache-2.0
// What is taken out of one rank's result: the chosen rows and columns.
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
  std::string left_out;                 // why nothing of it can be merged; empty otherwise
  bool unreadable = false;              // because it could not be read
  std::vector<std::string> not_found;   // of the configuration's apis
  std::vector<std::string> indices;     // columns that were taken
  std::vector<std::string_view> names;  // of the rows, in the order of the apis and of the result

  /// The cell of a row under an index.
  report::Cell cell(std::size_t index, std::size_t row, report::Scratch& scratch) const;

  struct Value {
    sheets::Cell::Kind kind = sheets::Cell::Kind::empty;
    bool maxima = false;  // both sides' maxima in place of what is no number: `npu` and `bench` are values
    std::uint32_t npu = 0;
    std::uint32_t bench = 0;
    double number = 0;
    std::string_view text;
  };
  std::string text_of(const Value& value, bool real) const;

  std::vector<Value> values;                        // each text that repeats is one
  std::vector<std::vector<std::uint32_t>> columns;  // of each index, the values of the rows
  /// A workbook does not tell 5 from 5.0; the Python tool takes all for real ones if a column has nothing but
  /// numbers, not all of them whole.
  bool npu_real = false;
  bool bench_real = false;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory;  // of the texts
};

/// Reads a rank's files. What is wrong with them is told in the result.
RankValues read_rank(const RankFiles& files, const Config& config);

}  // namespace msprobe::merge_result
