// SPDX-License-Identifier: Apache-2.0
#include "sheets/xlsx_reader.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "report/writers.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"
#include "unit/support/source_root.hpp"
#include "workbooks.hpp"

namespace msprobe::sheets_xlsx_reader_test {

using namespace msprobe;
using namespace msprobe::sheets;

namespace {

std::string complaint(const std::string& bytes) {
  return test::complaint_about("book.xlsx", [&] { contents(memory_source(bytes, "book.xlsx")); });
}
std::string complaint(const Parts& parts) {
  return complaint(workbook_of(parts));
}
std::string complaint(const Parts& parts, const XlsxLimits& limits) {
  return test::complaint_about("book.xlsx", [&] { contents(parts, limits); });
}

/// One text, one number, one flag a row.
class SmallTable final : public report::Table {
 public:
  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return 3; }
  report::Severity severity(std::size_t) const override { return report::Severity::none; }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch&) const override {
    static constexpr std::string_view kTexts[] = {"a<&>\x01\n_x0041_", "=1+1", ""};
    static constexpr double kNumbers[] = {0.1, INFINITY, -7};
    cells = {report::Text{kTexts[index]}, kNumbers[index], index == 1};
  }

 private:
  std::vector<std::string> columns_ = {"text", "number", "flag"};
};

}  // namespace

TEST_CASE("cells of all kinds, as openpyxl writes them") {
  CHECK(contents(open_file(test::in_source("tests/data/sheets/cells.xlsx"))) ==
        "[Sheet1] 'name' 'number' 'flag' | 'a<b>&\"'' 1.5 true | 'a<b>&\"'' -2 false | ' blanks \n' 1e+300 | "
        "- - - - 'far' | 'after a gap' - '#N/A' | 'rich text' '\u00fcml\u00e4ut \U0001f600' 46024"
        "[part & 1] 'only'[empty]");
}

TEST_CASE("what our own writer wrote") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "own.xlsx";
  const SmallTable table;
  report::write_workbook({{"Requires_grad Consistent", &table}, {"Five Thousandths Err Ratio", &table}},
                         path);
  const std::string rows =
      " 'text' 'number' 'flag' | 'a<&>\x01\n_x0041_' 0.1 false | ''=1+1' 'inf' true | - -7 false";
  CHECK(contents(open_file(path)) ==
        "[Requires_grad Consistent]" + rows + "[Five Thousandths Err Ratio]" + rows);
  report::WriteOptions parts;
  parts.xlsx_rows_per_sheet = 2;
  report::write_workbook({{"Five Thousandths Err Ratio", &table}}, path, parts);
  CHECK(contents(open_file(path)).find("[Five Thousandths Err Ra_part_1]") != std::string::npos);
}

TEST_CASE("shared texts, whole and in runs; cells without places; prefixes") {
  Parts parts = with_rows(
      R"(<row><c t="s"><v>1</v></c><c t="s"><v>0</v></c><c><v>2</v></c></row><row/><x:row><x:c t="s"><x:v>2</x:v></x:c></x:row>)");
  parts.shared =
      "<sst><si><t>zero</t></si><si><r><t>o</t></r><rPh><t>no</t></rPh><r><t>ne</t></r></si><si/></sst>";
  parts.sheet.replace(0, 10, "<worksheet xmlns:x='x'");
  CHECK(contents(parts) == "[Sheet1] 'one' 'zero' 2 | ''");
}

TEST_CASE("what is no workbook") {
  CHECK_REFUSED(std::string(), "book.xlsx: ");
  CHECK_REFUSED(std::string("name,number\n"), "book.xlsx: ");
  CHECK_REFUSED(archive::build_zip({{.name = "xl/workbook.xml", .payload = "<workbook/>"}}),
                "xl/_rels/workbook.xml.rels: missing");
  CHECK_REFUSED(archive::build_zip({{.name = "x", .payload = ""}}), "xl/workbook.xml: missing");
  Parts parts = with_rows("");
  parts.relations = "<Relationships/>";
  CHECK_REFUSED(parts, "the sheet 'Sheet1' has no part in the file");
  parts.relations = R"(<R><Relationship Id="rId1" Target="../../etc/passwd"/></R>)";
  CHECK_REFUSED(parts, "xl/../../etc/passwd: missing");
}

TEST_CASE("broken parts") {
  Parts parts;
  parts.sheet = "<worksheet><sheetData><row><c><v>1</v></c></row>";
  CHECK_REFUSED(parts, "sheet1.xml: line 1: no element found");
  parts.sheet = "<worksheet><a></b></worksheet>";
  CHECK_REFUSED(parts, "mismatched tag");
  CHECK_REFUSED(with_rows("<row><c><v>one</v></c></row>"), "'one' is not a number");
  CHECK_REFUSED(with_rows("<row><c><v>1e999</v></c></row>"), "'1e999' is not a number");
  CHECK_REFUSED(with_rows("<row><c t='s'><v>0</v></c></row>"), "there is no shared text 0");
  CHECK_REFUSED(with_rows("<row><c t='s'><v>-1</v></c></row>"), "not the number of a text");
  CHECK_REFUSED(with_rows("<row><c r='7'><v>1</v></c></row>"), "'7' is not a cell");
  CHECK_REFUSED(with_rows("<row><c r='B1'><v>1</v></c><c r='A1'><v>1</v></c></row>"), "out of order");
  CHECK_REFUSED(with_rows("<row><c r='XFE1'><v>1</v></c></row>"), "more columns");
  CHECK_REFUSED(with_rows("<row><c r='ZZZZZZZZZZZZZZZZZZZZZZZZ1'><v>1</v></c></row>"), "more columns");
  const std::string whole = workbook_of(with_rows("<row><c><v>1</v></c></row>"));
  for (std::size_t size = 0; size < whole.size(); size += 7)
    CHECK_REFUSED(whole.substr(0, size), "book.xlsx: ");
}

TEST_CASE("document types are refused, and with them entities that explode or lead outside") {
  Parts parts = with_rows("");
  parts.sheet =
      "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b "
      "'&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>]><worksheet>&b;</worksheet>";
  CHECK_REFUSED(parts, "a document type declaration is not accepted");
  parts.sheet = "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><worksheet>&a;</worksheet>";
  CHECK_REFUSED(parts, "a document type declaration is not accepted");
  parts.sheet = "<worksheet>&unknown;</worksheet>";
  CHECK_REFUSED(parts, "undefined entity");
}

TEST_CASE("limits of depth, tags, rows, texts, sheets and unpacked bytes") {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  CHECK_REFUSED(with_rows(deep), "nested too deeply");
  CHECK_REFUSED(with_rows("<!--" + std::string(3 << 20, 'x') + "-->"), "a tag or comment of more than");
  CHECK_REFUSED(with_rows("<row><c a='" + std::string(3 << 20, 'x') + "'/></row>"),
                "a tag or comment of more than");
  CHECK_REFUSED(with_rows("<row><c t='str'><v>" + std::string(17 << 20, 'x') + "</v></c></row>"),
                "a row of more than 16 MiB");
  XlsxLimits limits;
  limits.rows = 2;
  CHECK(complaint(with_rows("<row/><row/><row/>"), limits).find("more rows") != std::string::npos);
  const std::string far = "<row><c r='C1'><v>1</v></c></row>";
  limits.blanks = 3;
  CHECK(complaint(with_rows(far), limits).empty());
  CHECK(complaint(with_rows(far + far), limits).find("more blank cells") != std::string::npos);
  limits.shared_texts = 1;
  Parts parts = with_rows("");
  parts.shared = "<sst><si/><si/></sst>";
  CHECK(complaint(parts, limits).find("more shared texts") != std::string::npos);
  limits.shared_texts = 5;
  limits.shared_bytes = 3;
  parts.shared = "<sst><si><t>four</t></si></sst>";
  CHECK(complaint(parts, limits).find("more shared texts") != std::string::npos);
  limits.sheets = 1;
  parts.workbook = "<w><sheet name='a'/><sheet name='b'/></w>";
  CHECK(complaint(parts, limits).find("more sheets") != std::string::npos);
}

TEST_CASE("a part that lies about its size") {
  const std::string text = "<workbook/>";
  for (const std::uint64_t size : {text.size() - 1, text.size() + 1, std::size_t{1} << 40}) {
    const std::string bytes = archive::build_zip({{.name = "xl/workbook.xml",
                                                   .payload = archive::deflated(text),
                                                   .method = 8,
                                                   .size = size,
                                                   .crc = archive::crc_of(text)}});
    CHECK_REFUSED(bytes, "book.xlsx: ");
  }
  // 5 GiB of blanks in 5 MiB would be refused before they are unpacked.
  const std::string zip64 = archive::Bytes().u16(1).u16(8).u64(std::uint64_t{5} << 30).str();
  CHECK_REFUSED(archive::build_zip({{.name = "xl/workbook.xml",
                                     .payload = archive::deflated(text),
                                     .method = 8,
                                     .size = 0xffffffff,
                                     .crc = archive::crc_of(text),
                                     .local_size = 0xffffffff,
                                     .local_extra = archive::Bytes()
                                                        .u16(1)
                                                        .u16(16)
                                                        .u64(std::uint64_t{5} << 30)
                                                        .u64(archive::deflated(text).size())
                                                        .str(),
                                     .central_extra = zip64}}),
                "book.xlsx: ");
}

TEST_CASE("a file that is read does not grow what the callback gets") {
  std::size_t rows = 0;
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "<row><c><v>1</v></c></row>";
  read_xlsx(
      memory_source(workbook_of(with_rows(many))), [](std::string_view) {},
      [&](std::span<const Cell> cells) {
        CHECK(cells.size() == 1);
        ++rows;
      });
  CHECK(rows == 20'000);
}

}  // namespace msprobe::sheets_xlsx_reader_test
