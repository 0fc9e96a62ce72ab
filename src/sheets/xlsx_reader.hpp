// SPDX-License-Identifier: Apache-2.0
// Reads the cells of a workbook, sheet by sheet and row by row: shared and inline texts, numbers, booleans,
// and the values of formulas. Ignores formulas themselves, styles and everything else.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "sheets/sheet.hpp"
#include "support/byte_source.hpp"

namespace msprobe::sheets {

struct XlsxLimits {
  std::uint64_t sheets = 1000;
  std::uint64_t rows = 1'048'576;                         // of a sheet
  std::uint64_t blanks = 64'000'000;                      // cells of a sheet that are missing before others
  std::uint64_t shared_texts = 8'000'000;                 // their number
  std::uint64_t shared_bytes = std::uint64_t{256} << 20;  // their text
};

/// Calls `begin` with the name of each sheet, then `visit` with each row that holds anything. Memory: the
/// shared texts and one row. Throws FormatError with the file's name for a file that is no workbook or
/// exceeds the limits, perhaps after some rows.
void read_xlsx(std::shared_ptr<const ByteSource> file, const std::function<void(std::string_view)>& begin,
               const RowVisitor& visit, const XlsxLimits& limits = {});

}  // namespace msprobe::sheets
