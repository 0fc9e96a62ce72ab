// SPDX-License-Identifier: Apache-2.0
// Workbooks made part by part, and what a reader gets out of one.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "sheets/xlsx_reader.hpp"
#include "unit/archive/zip_builder.hpp"

namespace msprobe::sheets {

struct Parts {
  std::string workbook =
      R"(<workbook xmlns:r="r"><sheets><sheet name="Sheet1" r:id="rId1"/></sheets></workbook>)";
  std::string relations =
      R"(<Relationships><Relationship Id="rId1" Type="x/worksheet" Target="worksheets/sheet1.xml"/>)"
      R"(<Relationship Id="rId2" Type="x/sharedStrings" Target="sharedStrings.xml"/></Relationships>)";
  std::string shared = "<sst/>";
  std::string sheet;
};

inline std::string workbook_of(const Parts& parts) {
  std::vector<archive::Piece> pieces;
  const auto add = [&](const char* name, const std::string& text) {
    pieces.push_back({.name = name,
                      .payload = archive::deflated(text),
                      .method = 8,
                      .size = text.size(),
                      .crc = archive::crc_of(text)});
  };
  add("xl/workbook.xml", parts.workbook);
  add("xl/_rels/workbook.xml.rels", parts.relations);
  add("xl/sharedStrings.xml", parts.shared);
  add("xl/worksheets/sheet1.xml", parts.sheet);
  return archive::build_zip(pieces);
}

/// A sheet whose data these rows are.
inline Parts with_rows(std::string_view rows) {
  Parts parts;
  parts.sheet = "<worksheet><sheetData>" + std::string(rows) + "</sheetData></worksheet>";
  return parts;
}

inline std::string told(const Cell& cell) {
  switch (cell.kind) {
    case Cell::CellKind::empty:
      return "-";
    case Cell::CellKind::text:
      return "'" + std::string(cell.text) + "'";
    case Cell::CellKind::number:
      return fmt::format("{}", cell.number);
    case Cell::CellKind::boolean:
      break;
  }
  return cell.number != 0 ? "true" : "false";
}

/// `[name] cell cell | cell …`
inline std::string contents(const std::shared_ptr<const ByteSource>& file, const XlsxLimits& limits = {}) {
  std::string out;
  read_xlsx(
      file, [&](std::string_view name) { out += "[" + std::string(name) + "]"; },
      [&](std::span<const Cell> cells) {
        if (!out.ends_with(']')) out += " |";
        for (const Cell& cell : cells) out += " " + told(cell);
      },
      limits);
  return out;
}
inline std::string contents(const Parts& parts, const XlsxLimits& limits = {}) {
  return contents(memory_source(workbook_of(parts), "book.xlsx"), limits);
}

}  // namespace msprobe::sheets
