// SPDX-License-Identifier: Apache-2.0
// The parts of a details file that api_precision_compare reads.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "precheck/judgement/output.hpp"
#include "precheck/result_files/spelling.hpp"
#include "support/byte_source.hpp"

namespace msprobe::precheck {

/// A field where a number should be.
struct FigureField {
  enum class FieldKind : std::uint8_t { blank, number, text };
  FieldKind kind = FieldKind::blank;
  double value = 0;
};

struct DetailsRow {
  std::string name;
  std::string dtype;  // of the device
  std::string shape;
  std::string message;
  std::array<FigureField, kFigureCount> figures;  // those that no criterion needs stay blank

  const FigureField& operator[](Figure figure) const { return figures[static_cast<std::size_t>(figure)]; }
};

struct DetailsFile {
  static constexpr std::size_t kMostRows = 2'000'000;

  std::vector<DetailsRow> rows;

  /// FormatError naming the file if it is not a csv file, lacks columns that are needed, names one twice, or
  /// has more than kMostRows rows or a row with more fields than columns. Fields that a short row lacks are
  /// empty.
  static DetailsFile read(const ByteSource& file);
};

/// Rows by their names.
class RowsByName {
 public:
  explicit RowsByName(const DetailsFile& file);
  /// How many rows have the name, and the first of them.
  struct RowsOfName {
    std::size_t count = 0;
    std::size_t first = 0;
  };
  RowsOfName find(std::string_view name) const;

 private:
  std::unordered_map<std::string_view, RowsOfName> rows_;
};

}  // namespace msprobe::precheck
