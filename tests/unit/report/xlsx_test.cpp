// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/error.hpp"
#include "support/parallel.hpp"
#include "unit/report/fake_table.hpp"
#include "unit/report/workbook_reader.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::report_xlsx_test {

using namespace msprobe;
using namespace msprobe::report;
using test::attribute;
using test::CountingTable;
using test::FakeTable;
using test::kInf;
using test::kNan;
using test::read_sheet;
using test::SheetCell;
using test::unzip;
using test::written;

namespace {

constexpr const char* kFirstSheet = "xl/worksheets/sheet1.xml";

std::string first_sheet(const Table& table) {
  return unzip(written(table, Format::xlsx)).at(kFirstSheet);
}

SheetCell first_cell(Cell cell) {
  return read_sheet(first_sheet(FakeTable({"k"}, {{cell}}))).at("A2");
}

}  // namespace

TEST_CASE("workbook cells have the types of their values") {
  CHECK(first_cell(Text{"N/A"}).type == "text");
  CHECK(first_cell(Text{"0.5"}).type == "text");
  CHECK(first_cell(Text{"0.5"}).value == "0.5");
  CHECK(first_cell(Text{"['a.pt']", "[\"a.pt\"]"}).value == "['a.pt']");
  CHECK(first_cell(true).type == "boolean");
  CHECK(first_cell(true).value == "1");
  CHECK(first_cell(false).value == "0");
  CHECK(first_cell(std::int64_t{-42}).type == "number");
  CHECK(first_cell(std::int64_t{-42}).value == "-42");
  CHECK(first_cell(kInf).type == "text");
  CHECK(first_cell(kInf).value == "inf");
  CHECK(first_cell(-kInf).value == "-inf");
  CHECK(first_cell(kNan).value == "Nan");
  for (const double value : {0.1 + 0.2, 1e300, -1e-5, 5e-324, 1.0 / 3, 123456789012345680.0, 3.0}) {
    const SheetCell cell = first_cell(value);
    CHECK(cell.type == "number");
    CHECK(std::strtod(cell.value.c_str(), nullptr) == value);
  }
  CHECK(std::signbit(std::strtod(first_cell(-0.0).value.c_str(), nullptr)));
  CHECK(read_sheet(first_sheet(FakeTable({"k"}, {{Text{""}}}))).count("A2") == 0);
}

TEST_CASE("workbook text is shown as it is, and never as a formula") {
  for (const char* text : {"a & b", "<tag>", "say \"x\"", "it's", "\xE4\xB8\xAD\xC3\xA9\xF0\x9F\x98\x80",
                           "two\nlines\t", " blank before", "blank after ", "http://example.org/x", "norm_x",
                           "1e5", "TRUE", "\x7F", "a;b", "_x_", "-1.5", "x_x12"}) {
    CAPTURE(text);
    const SheetCell cell = first_cell(Text{text});
    CHECK(cell.type == "text");
    CHECK(cell.value == text);
    const std::string_view view = text;
    if (view.front() == ' ' || view.back() == ' ' || view.find('\n') != view.npos) CHECK(cell.keeps_blanks);
  }
  CHECK(first_cell(Text{"=1+1"}).value == "'=1+1");
  CHECK(first_cell(Text{"a;@b"}).value == "a;'@b");
  CHECK(first_cell(Text{"\xEF\xBC\x9D"
                        "1"})
            .value ==
        "'\xEF\xBC\x9D"
        "1");
  CHECK(first_cell(Text{"=1", "1"}).value == "'=1");
  CHECK(read_sheet(first_sheet(FakeTable({"=x", "a<b"}, {}))).at("A1").value == "'=x");
}

TEST_CASE("characters that XML does not know are written in the notation of workbooks") {
  CHECK(first_cell(Text{std::string_view("a\0b\x1b\r", 5)}).value == "a_x0000_b_x001B__x000D_");
  CHECK(first_cell(Text{"_x0041_"}).value == "_x005F_x0041_");
  CHECK(first_cell(Text{"a\xFF\xED\xA0\x80"}).value == "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(first_cell(Text{"\xEF\xBF\xBF"}).value == "\xEF\xBF\xBD");
}

TEST_CASE("a cell holds 32767 UTF-16 units, the rest is cut") {
  const std::string ellipsis = "\xE2\x80\xA6";
  const std::string fits(32'767, 'x');
  CHECK(first_cell(Text{fits}).value == fits);
  CHECK(first_cell(Text{fits + "y"}).value == fits.substr(1) + ellipsis);
  std::string accents;
  for (int i = 0; i < 32'767; ++i) accents += "\xC3\xA9";
  CHECK(first_cell(Text{accents}).value == accents);
  CHECK(first_cell(Text{accents + "x"}).value == accents.substr(2) + ellipsis);
  // Two units each: 16,383 of them and the ellipsis.
  std::string faces;
  for (int i = 0; i < 20'000; ++i) faces += "\xF0\x9F\x98\x80";
  CHECK(first_cell(Text{faces}).value == faces.substr(0, 16'383 * 4) + ellipsis);
}

TEST_CASE("the header is styled, frozen and filtered; bad rows are coloured") {
  const FakeTable table(
      {"Name", "Result", "Note"},
      {{Text{"a"}, 1.0, Text{""}}, {Text{"b"}, true, Text{""}}, {Text{"c"}, std::int64_t{1}, Text{""}}},
      {Severity::error, Severity::warning, Severity::none});
  const auto entries = unzip(written(table, Format::xlsx));
  const std::string& sheet = entries.at(kFirstSheet);
  CHECK(sheet.find("<pane ySplit=\"1\" topLeftCell=\"A2\" activePane=\"bottomLeft\" state=\"frozen\"/>") !=
        sheet.npos);
  CHECK(sheet.find("<autoFilter ref=\"A1:C4\"/>") != sheet.npos);
  CHECK(sheet.find("<dimension ref=\"A1:C4\"/>") != sheet.npos);
  CHECK(entries.at("xl/workbook.xml").find("'Sheet1'!$A$1:$C$4<") != std::string::npos);

  // The looks behind the numbers of the styles, in the order in which styles.xml lists them.
  const std::string& styles = entries.at("xl/styles.xml");
  std::vector<std::string> looks;
  for (std::size_t at = styles.find("<cellXfs"); (at = styles.find("<xf ", at)) != std::string::npos; ++at) {
    looks.push_back(styles.substr(at, styles.find('>', at) - at));
  }
  std::vector<std::string> fills;
  for (std::size_t at = 0; (at = styles.find("<fill>", at)) != std::string::npos; ++at) {
    fills.push_back(styles.substr(at, styles.find("</fill>", at) - at));
  }
  // Three each for text that looks like a formula, for rows with text of several lines, and for that text.
  REQUIRE(looks.size() == 13);
  REQUIRE(fills.size() == 4);
  auto cells = read_sheet(sheet);
  const auto fill_of = [&](const std::string& reference) {
    const std::string& style = cells.at(reference).style;
    return fills.at(std::stoul(attribute(looks.at(style.empty() ? 0 : std::stoul(style)), "fillId")));
  };
  for (const char* reference : {"A2", "B2", "C2"})
    CHECK(fill_of(reference).find("FFFFC7CE") != std::string::npos);
  for (const char* reference : {"A3", "B3", "C3"})
    CHECK(fill_of(reference).find("FFFFEB9C") != std::string::npos);
  for (const char* reference : {"A4", "B4"}) CHECK(fill_of(reference).find("none") != std::string::npos);
  CHECK(cells.at("C2").type == "blank");
  CHECK(cells.count("C4") == 0);
  const std::string& header = looks.at(std::stoul(cells.at("A1").style));
  CHECK(attribute(header, "fontId") == "1");
  CHECK(attribute(header, "borderId") == "1");
  CHECK(styles.find("<font><b/>") != std::string::npos);
  CHECK(styles.find("horizontal=\"center\"") != std::string::npos);
  CHECK(styles.find("style=\"thin\"") != std::string::npos);
}

TEST_CASE("columns are as wide as their first rows, within reason") {
  const std::string sheet = first_sheet(FakeTable(
      {"A", "B"}, {{Text{std::string_view("Module.conv1.forward.0.input.0")}, Text{std::string_view("x")}}}));
  CHECK(sheet.find("<col min=\"1\" max=\"1\" width=\"32\"") != sheet.npos);
  CHECK(sheet.find("<col min=\"2\" max=\"2\" width=\"9\"") != sheet.npos);
}

TEST_CASE("sheets split evenly from the limit on") {
  WriteOptions options;
  options.xlsx_rows_per_sheet = 5;
  const auto sheets_of = [&](std::size_t rows) {
    const auto entries = unzip(written(CountingTable(rows), Format::xlsx, options));
    const std::string& book = entries.at("xl/workbook.xml");
    std::vector<std::string> found;
    for (std::size_t at = 0; (at = book.find("<sheet ", at)) != std::string::npos; ++at) {
      const std::string tag = book.substr(at, book.find('>', at) - at);
      const auto cells =
          read_sheet(entries.at(fmt::format("xl/worksheets/sheet{}.xml", attribute(tag, "sheetId"))));
      CHECK(cells.at("A1").value == "Name");
      found.push_back(attribute(tag, "name") + ":" + std::to_string(cells.size() / 4 - 1));
      if (cells.count("B2") != 0) found.back() += " from " + cells.at("B2").value;
    }
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(sheets_of(0) == Names{"Sheet1:0"});
  CHECK(sheets_of(4) == Names{"Sheet1:4 from 0"});
  CHECK(sheets_of(5) == Names{"part_0:5 from 0"});
  CHECK(sheets_of(6) == Names{"part_0:3 from 0", "part_1:3 from 3"});
  CHECK(sheets_of(11) == Names{"part_0:4 from 0", "part_1:4 from 4", "part_2:3 from 8"});
}

TEST_CASE("many rows and columns keep their places") {
  constexpr std::size_t kRows = 20'000;
  const auto cells = read_sheet(first_sheet(CountingTable(kRows)));
  CHECK(cells.size() == 4 * (kRows + 1));
  bool right = true;
  for (std::size_t i = 0; i < kRows; ++i) {
    right = right && cells.at(fmt::format("A{}", i + 2)).value == fmt::format("name.{}", i) &&
            cells.at(fmt::format("B{}", i + 2)).value == std::to_string(i);
  }
  CHECK(right);

  std::vector<std::string> columns;
  for (int i = 0; i < 703; ++i) columns.push_back(std::to_string(i));
  const auto wide = read_sheet(first_sheet(FakeTable(columns, {})));
  CHECK(wide.at("Z1").value == "25");
  CHECK(wide.at("AA1").value == "26");
  CHECK(wide.at("AZ1").value == "51");
  CHECK(wide.at("BA1").value == "52");
  CHECK(wide.at("ZZ1").value == "701");
  CHECK(wide.at("AAA1").value == "702");
  CHECK_THROWS_AS(written(FakeTable(std::vector<std::string>(16'385, "c"), {}), Format::xlsx), Error);
  CHECK(read_sheet(first_sheet(FakeTable({}, {}))).empty());
}

TEST_CASE("a workbook names every part it holds") {
  WriteOptions options;
  options.xlsx_rows_per_sheet = 2;
  const auto entries = unzip(written(CountingTable(5), Format::xlsx, options));
  const std::string& types = entries.at("[Content_Types].xml");
  for (const auto& [name, contents] : entries) {
    CAPTURE(name);
    const bool by_extension = name == "[Content_Types].xml" || name.ends_with(".rels");
    CHECK((by_extension || types.find("PartName=\"/" + name + "\"") != std::string::npos));
    CHECK(contents.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<"));
    // No date of today, so that equal results are equal files.
    CHECK(contents.find("dcterms") == std::string::npos);
  }
  CHECK(entries.size() == 9);
}

TEST_CASE("several tables become sheets of their names, cut where they are too long") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "book.xlsx";
  const FakeTable first({"a", "b"}, {{Text{"=1+1"}, Text{"x"}}});
  const FakeTable second({"c"}, {{std::int64_t{1}}, {std::int64_t{2}}, {std::int64_t{3}}});
  const FakeTable empty({"d"}, {});
  WriteOptions options;
  options.xlsx_rows_per_sheet = 2;
  options.quote_prefix = true;
  write_workbook({{"one", &first}, {"two", &second}, {"none", &empty}}, path, options);
  const auto entries = unzip(test::read_file(path));
  const std::string& book = entries.at("xl/workbook.xml");
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = book.find("<sheet ", at)) != std::string::npos; ++at)
    names.push_back(attribute(book.substr(at, book.find('>', at) - at), "name"));
  CHECK(names == std::vector<std::string>{"one", "two_part_0", "two_part_1", "none"});
  const auto cells = read_sheet(entries.at("xl/worksheets/sheet1.xml"));
  CHECK(cells.at("A2").value == "=1+1");
  CHECK(cells.at("A2").type == "text");
  CHECK_FALSE(cells.at("A2").style.empty());
  CHECK(cells.at("B2").style.empty());
  CHECK(read_sheet(entries.at("xl/worksheets/sheet2.xml")).at("A3").value == "2");
  CHECK(read_sheet(entries.at("xl/worksheets/sheet3.xml")).at("A2").value == "3");
  CHECK(read_sheet(entries.at("xl/worksheets/sheet4.xml")).size() == 1);
}

TEST_CASE("text of several lines shows all of them where that is asked for") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "book.xlsx";
  const FakeTable table({"a", "b"}, {{Text{"one\ntwo"}, std::int64_t{1}}}, {Severity::error});
  for (const bool wrap : {false, true}) {
    WriteOptions options;
    options.wrap_lines = wrap;
    write_workbook({{"one", &table}}, path, options);
    const auto entries = unzip(test::read_file(path));
    const std::string& styles = entries.at("xl/styles.xml");
    const auto look_of = [&](const std::string& number) {
      std::size_t at = styles.find("<cellXfs");
      for (std::size_t i = 0; i <= std::stoul(number); ++i) at = styles.find("<xf ", at + 1);
      return styles.substr(at, styles.find("<xf ", at + 1) - at);
    };
    const auto cells = read_sheet(entries.at("xl/worksheets/sheet1.xml"));
    CHECK(cells.at("A2").value == "one\ntwo");
    CHECK((entries.at("xl/worksheets/sheet1.xml").find("<row r=\"2\" ht=\"30\"") != std::string::npos) ==
          wrap);
    const std::string lines = look_of(cells.at("A2").style);
    const std::string other = look_of(cells.at("B2").style);
    CHECK((lines.find("wrapText=\"1\"") != std::string::npos) == wrap);
    CHECK(other.find("wrapText") == std::string::npos);
    for (const std::string& look : {lines, other}) {
      CHECK((look.find("vertical=\"top\"") != std::string::npos) == wrap);
      CHECK(look.find("fillId=\"3\"") != std::string::npos);
    }
  }
}

}  // namespace msprobe::report_xlsx_test
