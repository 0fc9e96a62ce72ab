// SPDX-License-Identifier: Apache-2.0
// Tables that were written as csv or as a workbook, read row by row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace msprobe::sheets {

struct Cell {
  enum class CellKind : std::uint8_t { empty, text, number, boolean };
  CellKind kind = CellKind::empty;
  double number = 0;  // 0 or 1 for a boolean
  std::string_view text;
};

/// Receives the rows in order; the cells are valid during the call.
using RowVisitor = std::function<void(std::span<const Cell>)>;

inline constexpr std::size_t kMostColumns = 16384;
inline constexpr std::size_t kMostRowText = std::size_t{16} << 20;

}  // namespace msprobe::sheets
