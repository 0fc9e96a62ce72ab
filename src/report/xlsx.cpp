// SPDX-License-Identifier: Apache-2.0
// Writes workbooks directly as SpreadsheetML. A library formats and compresses on one thread, keeps sixteen
// digits of a number and does not notice a full disk; the format needed here is small enough to be streamed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "archive/zip_writer.hpp"
#include "report/cell_text.hpp"
#include "report/writer_parts.hpp"
#include "report/xml_text.hpp"
#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::report {
namespace {

constexpr std::size_t kMostSheetStem = 23;      // a name has 31 characters at most, and `_part_12` follows
constexpr std::uint64_t kMostRows = 1'048'576;  // of a sheet, header included
constexpr std::size_t kMostColumns = 16'384;
constexpr std::size_t kRowsForWidths = 200;
constexpr std::size_t kWidest = 60;      // characters of a column
constexpr std::size_t kLineHeight = 15;  // points
constexpr std::size_t kHighest = 409;    // that a spreadsheet lets a row be

constexpr std::string_view kProlog = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
constexpr std::string_view kMain = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
constexpr std::string_view kRelations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
constexpr std::string_view kPackage = "http://schemas.openxmlformats.org/package/2006";

// Indices into the cellXfs of styles(); the two of rows are in the order of Severity.
constexpr int kHeaderStyle = 1;
constexpr std::array<std::string_view, 3> kRowStyle = {"", " s=\"2\"", " s=\"3\""};
// The same, marked as text regardless of its beginning.
constexpr std::array<std::string_view, 3> kQuotedStyle = {" s=\"4\"", " s=\"5\"", " s=\"6\""};
// For workbooks with text of several lines: at the top of the row, and for that text all of its lines.
constexpr std::array<std::string_view, 3> kTopStyle = {" s=\"7\"", " s=\"8\"", " s=\"9\""};
constexpr std::array<std::string_view, 3> kWrappedStyle = {" s=\"10\"", " s=\"11\"", " s=\"12\""};

/// A style of cells for each severity; `inside` is the content of the element besides the fill.
std::string looks_of_rows(std::string_view attributes, std::string_view inside) {
  std::string out;
  for (const auto* const fill : {"0", "2", "3"}) {
    out += fmt::format(
        "<xf numFmtId=\"0\" fontId=\"0\" fillId=\"{0}\" borderId=\"0\" xfId=\"0\"{1} applyFill=\"1\" "
        "applyAlignment=\"1\">{2}</xf>",
        fill, attributes, inside);
  }
  return out;
}

std::string styles() {
  constexpr std::string_view kTop = "<alignment vertical=\"top\"/>";
  return fmt::format(
      "{}<styleSheet xmlns=\"{}\">"
      "<fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/><family val=\"2\"/></font>"
      "<font><b/><sz val=\"11\"/><name val=\"Calibri\"/><family val=\"2\"/></font></fonts>"
      "<fills count=\"4\"><fill><patternFill patternType=\"none\"/></fill>"
      "<fill><patternFill patternType=\"gray125\"/></fill>"
      "<fill><patternFill patternType=\"solid\"><fgColor rgb=\"FFFFEB9C\"/><bgColor "
      "indexed=\"64\"/></patternFill></fill>"
      "<fill><patternFill patternType=\"solid\"><fgColor rgb=\"FFFFC7CE\"/><bgColor "
      "indexed=\"64\"/></patternFill></fill>"
      "</fills>"
      "<borders count=\"2\"><border><left/><right/><top/><bottom/><diagonal/></border>"
      "<border><left style=\"thin\"><color auto=\"1\"/></left><right style=\"thin\"><color "
      "auto=\"1\"/></right>"
      "<top style=\"thin\"><color auto=\"1\"/></top><bottom style=\"thin\"><color "
      "auto=\"1\"/></bottom><diagonal/></border>"
      "</borders>"
      "<cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs>"
      "<cellXfs count=\"13\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/>"
      "<xf numFmtId=\"0\" fontId=\"1\" fillId=\"0\" borderId=\"1\" xfId=\"0\" applyFont=\"1\" "
      "applyBorder=\"1\" "
      "applyAlignment=\"1\"><alignment horizontal=\"center\" vertical=\"top\"/></xf>"
      "<xf numFmtId=\"0\" fontId=\"0\" fillId=\"2\" borderId=\"0\" xfId=\"0\" applyFill=\"1\"/>"
      "<xf numFmtId=\"0\" fontId=\"0\" fillId=\"3\" borderId=\"0\" xfId=\"0\" applyFill=\"1\"/>"
      "{}{}{}"
      "</cellXfs>"
      "<cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles>"
      "</styleSheet>\n",
      kProlog, kMain, looks_of_rows(" quotePrefix=\"1\"", kTop), looks_of_rows("", kTop),
      looks_of_rows("", "<alignment vertical=\"top\" wrapText=\"1\"/>"));
}

/// A, B, …, Z, AA, … for 0, 1, ….
std::string column_name(std::size_t index) {
  std::string name;
  for (std::size_t n = index + 1; n != 0; n = (n - 1) / 26) {
    name.insert(name.begin(), static_cast<char>('A' + (n - 1) % 26));
  }
  return name;
}

struct Sheet {
  std::string name;
  const Table* table;
  RowRange rows;
};

/// `name` is that of a sheet that holds all rows; parts are called `part_prefix` and a number.
void plan_sheets(const Table& table, const std::string& name, const std::string& part_prefix,
                 const WriteOptions& options, std::vector<Sheet>& sheets) {
  const std::size_t rows = table.rows();
  const std::size_t limit = std::clamp<std::uint64_t>(options.xlsx_rows_per_sheet, 1, kMostRows - 1);
  if (rows < limit) {
    sheets.push_back({name, &table, {0, rows}});
    return;
  }
  const std::size_t count = (rows - 1) / limit + 1;
  const std::size_t each = (rows - 1) / count + 1;
  std::size_t number = 0;
  for (std::size_t first = 0; first < rows; first += each) {
    sheets.push_back(
        {fmt::format("{}{}", part_prefix, number++), &table, {first, std::min(rows, first + each)}});
  }
}

/// The name of the cells of a sheet, header included, e.g. A1:AB50001 or $A$1:$AB$50001.
std::string area(const Sheet& sheet, std::string_view mark) {
  return fmt::format("{0}A{0}1:{0}{1}{0}{2}", mark, column_name(sheet.table->columns().size() - 1),
                     sheet.rows.last - sheet.rows.first + 1);
}

void append_number(std::string& out, double value) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

/// Lines that a cell takes in the widest column, 1 if it does not have several.
std::size_t lines_of(const Cell& cell) {
  const auto* text = std::get_if<Text>(&cell);
  if (text == nullptr || text->value.find('\n') == std::string_view::npos) return 1;
  std::size_t lines = 0;
  for (const std::string_view line : split(text->value, "\n"))
    lines += std::max<std::size_t>((line.size() + kWidest - 1) / kWidest, 1);
  return lines;
}

class RowWriter {
 public:
  RowWriter(const Table& table, std::size_t first_row, const WriteOptions& options)
      : table_(table),
        first_row_(first_row),
        quote_prefix_(options.quote_prefix),
        wrap_lines_(options.wrap_lines) {
    for (std::size_t i = 0; i < table.columns().size(); ++i) openings_.push_back("<c r=\"" + column_name(i));
  }

  void append_header(std::string& out) const {
    begin_row(out, "1");
    const std::string style = fmt::format(" s=\"{}\"", kHeaderStyle);
    for (std::size_t i = 0; i < openings_.size(); ++i) {
      append_text(out, {openings_[i], "1", style, {}, {}}, table_.columns()[i]);
    }
    out += "</row>";
  }

  void append_row(std::string& out, std::size_t index, std::vector<Cell>& cells, Scratch& scratch) const {
    table_.row(index, cells, scratch);
    const std::string number = std::to_string(index - first_row_ + 2);
    const auto severity = static_cast<std::size_t>(table_.severity(index));
    const std::string_view style = wrap_lines_ ? kTopStyle.at(severity) : kRowStyle.at(severity);
    const std::string_view wrapped = wrap_lines_ ? kWrappedStyle.at(severity) : style;
    const std::string_view quoted = quote_prefix_ ? kQuotedStyle.at(severity) : std::string_view();
    std::size_t lines = 1;
    for (const Cell& cell : cells) lines = std::max(lines, wrap_lines_ ? lines_of(cell) : 1);
    begin_row(out, number, lines);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const CellMarkup place{openings_.at(i), number, style, quoted, wrapped};
      std::visit([&](const auto& cell) { append_cell(out, place, cell); }, cells[i]);
      if (!std::holds_alternative<Text>(cells[i])) out += "</v></c>";  // the end of a text depends on it
    }
    out += "</row>";
  }

 private:
  struct CellMarkup {
    std::string_view opening;
    std::string_view number;
    std::string_view style;
    std::string_view quoted_style;   // of text that looks like a formula; empty: it gets an apostrophe
    std::string_view wrapped_style;  // of text of several lines
  };

  static void begin_row(std::string& out, std::string_view number, std::size_t lines = 1) {
    out += "<row r=\"";
    out += number;
    // Not every program finds the height of a row itself.
    if (lines > 1) {
      fmt::format_to(std::back_inserter(out), "\" ht=\"{}\" customHeight=\"1",
                     std::min(lines * kLineHeight, kHighest));
    }
    out += "\">";
  }
  static void begin_cell(std::string& out, const CellMarkup& place, std::string_view rest) {
    out += place.opening;
    out += place.number;
    out += '"';
    out += place.style;
    out += rest;
  }

  static void append_text(std::string& out, const CellMarkup& place, std::string_view text) {
    if (text.empty()) {
      if (!place.style.empty()) begin_cell(out, place, "/>");
      return;
    }
    const TextTraits traits = traits_of(text);
    if (is_plain_xml(text, traits) && is_safe_text(text, traits)) {
      // The type for results of formulas is the shortest way to write plain text; there is no formula.
      begin_cell(out, place, " t=\"str\"><v>");
      out += text;
      out += "</v></c>";
      return;
    }
    if (!place.quoted_style.empty() && looks_like_formula(text)) {
      const CellMarkup quoted{place.opening, place.number, place.quoted_style, {}, {}};
      begin_cell(out, quoted, " t=\"inlineStr\"><is><t xml:space=\"preserve\">");
      append_xml(out, text, kMostCellText);
    } else {
      const bool lines = text.find('\n') != std::string_view::npos;
      const CellMarkup shown{place.opening, place.number, lines ? place.wrapped_style : place.style, {}, {}};
      begin_cell(out, shown, " t=\"inlineStr\"><is><t xml:space=\"preserve\">");
      append_xml(out, safe_text(text), kMostCellText);
    }
    out += "</t></is></c>";
  }

  static void append_cell(std::string& out, const CellMarkup& place, const Text& text) {
    append_text(out, place, text.value);
  }
  static void append_cell(std::string& out, const CellMarkup& place, const Spelled& number) {
    begin_cell(out, place, " t=\"str\"><v>");
    append_spelled(out, number);
  }
  static void append_cell(std::string& out, const CellMarkup& place, double value) {
    begin_cell(out, place, std::isfinite(value) ? "><v>" : " t=\"str\"><v>");
    if (std::isfinite(value)) {
      append_number(out, value);
    } else {
      out += std::isnan(value) ? "Nan" : value < 0 ? "-inf" : "inf";
    }
  }
  static void append_cell(std::string& out, const CellMarkup& place, std::int64_t value) {
    begin_cell(out, place, "><v>");
    append_json_integer(out, value);
  }
  static void append_cell(std::string& out, const CellMarkup& place, bool value) {
    begin_cell(out, place, " t=\"b\"><v>");
    out += value ? '1' : '0';
  }

  const Table& table_;
  std::size_t first_row_;
  bool quote_prefix_;
  bool wrap_lines_;
  std::vector<std::string> openings_;
};

struct CellLength {
  std::size_t operator()(const Text& text) const { return text.value.size(); }
  std::size_t operator()(const Spelled& number) const {
    std::string text;
    append_spelled(text, number);
    return text.size();
  }
  std::size_t operator()(double) const { return 12; }
  std::size_t operator()(std::int64_t) const { return 8; }
  std::size_t operator()(bool) const { return 6; }
};

/// Column widths in characters after the header and the first rows: wide enough to read, narrow enough to
/// scroll.
std::vector<std::size_t> column_widths(const Table& table, RowRange rows) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.columns()) widths.push_back(name.size() + 3);  // 3: the filter's arrow
  std::vector<Cell> cells;
  Scratch scratch;
  for (std::size_t i = rows.first; i < std::min(rows.last, rows.first + kRowsForWidths); ++i) {
    table.row(i, cells, scratch);
    for (std::size_t k = 0; k < std::min(cells.size(), widths.size()); ++k) {
      widths[k] = std::max(widths[k], std::visit(CellLength{}, cells[k]) + 2);
    }
  }
  for (std::size_t& width : widths) width = std::clamp<std::size_t>(width, 9, kWidest);
  return widths;
}

std::string sheet_head(const Sheet& sheet, bool selected) {
  const Table& table = *sheet.table;
  std::string out = fmt::format("{}<worksheet xmlns=\"{}\">", kProlog, kMain);
  if (table.columns().empty()) return out + "<sheetData>";
  const std::string active = selected ? " tabSelected=\"1\"" : "";
  out += fmt::format("<dimension ref=\"{}\"/><sheetViews><sheetView{} workbookViewId=\"0\">", area(sheet, ""),
                     active);
  out +=
      "<pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/>"
      "<selection pane=\"bottomLeft\"/></sheetView></sheetViews><sheetFormatPr "
      "defaultRowHeight=\"15\"/><cols>";
  std::size_t column = 1;
  for (const std::size_t width : column_widths(table, sheet.rows)) {
    out += fmt::format("<col min=\"{0}\" max=\"{0}\" width=\"{1}\" customWidth=\"1\"/>", column++, width);
  }
  return out + "</cols><sheetData>";
}

std::string sheet_tail(const Sheet& sheet) {
  if (sheet.table->columns().empty()) return "</sheetData></worksheet>\n";
  // Differences are text on purpose; no spreadsheet needs to flag each of them.
  return fmt::format(
      "</sheetData><autoFilter ref=\"{0}\"/><ignoredErrors><ignoredError sqref=\"{0}\" "
      "numberStoredAsText=\"1\"/>"
      "</ignoredErrors></worksheet>\n",
      area(sheet, ""));
}

void append(archive::ZipWriter& zip, std::string_view text) {
  archive::DeflatedBlock block;
  archive::deflate_block(text, block);
  zip.append(block);
}

void write_sheet(archive::ZipWriter& zip, const Sheet& sheet, bool selected, const WriteOptions& options) {
  const Table& table = *sheet.table;
  const RowWriter writer(table, sheet.rows.first, options);
  std::string head = sheet_head(sheet, selected);
  if (!table.columns().empty()) writer.append_header(head);
  append(zip, head);
  struct SheetBlock {
    std::string xml;
    archive::DeflatedBlock deflated;
  };
  const auto make = [&](RowRange part, SheetBlock& block) {
    std::vector<Cell> cells;
    Scratch scratch;
    block.xml.clear();
    for (std::size_t i = part.first; i < part.last; ++i) writer.append_row(block.xml, i, cells, scratch);
    archive::deflate_block(block.xml, block.deflated);
    return block.xml.size();
  };
  each_block<SheetBlock>(sheet.rows, options, make,
                         [&](const SheetBlock& block) { zip.append(block.deflated); });
  append(zip, sheet_tail(sheet));
}

std::string content_types(std::size_t sheets) {
  constexpr std::string_view kType = "application/vnd.openxmlformats-officedocument.spreadsheetml.";
  std::string out = fmt::format(
      "{0}<Types xmlns=\"{1}/content-types\">"
      "<Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>"
      "<Default Extension=\"xml\" ContentType=\"application/xml\"/>"
      "<Override PartName=\"/docProps/core.xml\" "
      "ContentType=\"application/vnd.openxmlformats-package.core-properties+xml\"/>"
      "<Override PartName=\"/xl/workbook.xml\" ContentType=\"{2}sheet.main+xml\"/>"
      "<Override PartName=\"/xl/styles.xml\" ContentType=\"{2}styles+xml\"/>",
      kProlog, kPackage, kType);
  for (std::size_t i = 1; i <= sheets; ++i) {
    out += fmt::format("<Override PartName=\"/xl/worksheets/sheet{}.xml\" ContentType=\"{}worksheet+xml\"/>",
                       i, kType);
  }
  return out + "</Types>\n";
}

std::string package_relations() {
  return fmt::format(
      "{0}<Relationships xmlns=\"{1}/relationships\">"
      "<Relationship Id=\"rId1\" Type=\"{2}/officeDocument\" Target=\"xl/workbook.xml\"/>"
      "<Relationship Id=\"rId2\" Type=\"{1}/relationships/metadata/core-properties\" "
      "Target=\"docProps/core.xml\"/>"
      "</Relationships>\n",
      kProlog, kPackage, kRelations);
}

/// No dates, so that equal results are equal files.
std::string properties() {
  return fmt::format(
      "{0}<cp:coreProperties xmlns:cp=\"{1}/metadata/core-properties\" "
      "xmlns:dc=\"http://purl.org/dc/elements/1.1/\">"
      "<dc:creator>msprobe</dc:creator></cp:coreProperties>\n",
      kProlog, kPackage);
}

std::string workbook(const std::vector<Sheet>& sheets) {
  std::string out =
      fmt::format("{}<workbook xmlns=\"{}\" xmlns:r=\"{}\"><bookViews><workbookView/></bookViews><sheets>",
                  kProlog, kMain, kRelations);
  for (std::size_t i = 0; i < sheets.size(); ++i) {
    out += fmt::format("<sheet name=\"{0}\" sheetId=\"{1}\" r:id=\"rId{1}\"/>", sheets[i].name, i + 1);
  }
  out += "</sheets>";
  std::string names;
  for (std::size_t i = 0; i < sheets.size(); ++i) {
    if (sheets[i].table->columns().empty()) continue;
    names += fmt::format(
        "<definedName name=\"_xlnm._FilterDatabase\" localSheetId=\"{}\" "
        "hidden=\"1\">'{}'!{}</definedName>",
        i, sheets[i].name, area(sheets[i], "$"));
  }
  if (!names.empty()) out += "<definedNames>" + names + "</definedNames>";
  return out + "</workbook>\n";
}

std::string workbook_relations(std::size_t sheets) {
  std::string out = fmt::format("{}<Relationships xmlns=\"{}/relationships\">", kProlog, kPackage);
  for (std::size_t i = 1; i <= sheets; ++i) {
    out +=
        fmt::format("<Relationship Id=\"rId{0}\" Type=\"{1}/worksheet\" Target=\"worksheets/sheet{0}.xml\"/>",
                    i, kRelations);
  }
  out += fmt::format("<Relationship Id=\"rId{}\" Type=\"{}/styles\" Target=\"styles.xml\"/>", sheets + 1,
                     kRelations);
  return out + "</Relationships>\n";
}

void write_sheets(const std::vector<Sheet>& sheets, OutputFile& file, const WriteOptions& options) {
  for (const Sheet& sheet : sheets) {
    if (sheet.table->columns().size() > kMostColumns) {
      throw Error(fmt::format("{} columns do not fit into a workbook, which has {}",
                              sheet.table->columns().size(), kMostColumns),
                  "choose csv or jsonl");
    }
  }
  archive::ZipWriter zip(file, archive::ZipStyle::workbook);
  const auto add = [&](const char* name, std::string_view text) {
    zip.begin_blocks(name);
    append(zip, text);
    zip.end();
  };
  add("[Content_Types].xml", content_types(sheets.size()));
  add("_rels/.rels", package_relations());
  add("docProps/core.xml", properties());
  add("xl/workbook.xml", workbook(sheets));
  add("xl/_rels/workbook.xml.rels", workbook_relations(sheets.size()));
  add("xl/styles.xml", styles());
  for (std::size_t i = 0; i < sheets.size(); ++i) {
    zip.begin_blocks(fmt::format("xl/worksheets/sheet{}.xml", i + 1));
    write_sheet(zip, sheets[i], i == 0, options);
    zip.end();
  }
  zip.finish();
}

}  // namespace

void write_xlsx(const Table& table, OutputFile& file, const WriteOptions& options) {
  std::vector<Sheet> sheets;
  plan_sheets(table, options.sheet, "part_", options, sheets);
  write_sheets(sheets, file, options);
}

void write_xlsx(const std::vector<NamedTable>& tables, OutputFile& file, const WriteOptions& options) {
  std::vector<Sheet> sheets;
  for (const NamedTable& table : tables)
    plan_sheets(*table.table, table.name, table.name.substr(0, kMostSheetStem) + "_part_", options, sheets);
  write_sheets(sheets, file, options);
}

}  // namespace msprobe::report
