// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "unit/report/fake_table.hpp"

namespace msprobe::report_csv_test {

using namespace msprobe;
using namespace msprobe::report;
using test::CountingTable;
using test::FakeTable;
using test::kInf;
using test::kNan;
using test::written;

namespace {

std::string field(std::string_view text) {
  const std::string line = written(FakeTable({"a", "b"}, {{Text{text}, Text{"z"}}}), Format::csv);
  REQUIRE(line.substr(0, 4) == "a,b\n");
  REQUIRE(line.substr(line.size() - 3) == ",z\n");
  return line.substr(4, line.size() - 7);
}

/// Fields as the reader of Python's csv module sees them.
std::vector<std::vector<std::string>> parse_csv(const std::string& bytes) {
  std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    std::string& last = lines.back().back();
    if (quoted) {
      if (c != '"') {
        last += c;
      } else if (i + 1 < bytes.size() && bytes[i + 1] == '"') {
        last += bytes[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && last.empty()) {
      quoted = true;
    } else if (c == ',') {
      lines.back().emplace_back();
    } else if (c == '\n') {
      lines.emplace_back(1);
    } else {
      last += c;
    }
  }
  lines.pop_back();
  return lines;
}

}  // namespace

TEST_CASE("csv cells are spelled as the Python tool spells them") {
  const FakeTable table({"t", "s", "d", "i", "b"},
                        {{Text{"N/A"}, Text{"['a.pt', 'b.pt']", "[]"}, 1.0, std::int64_t{-3}, true},
                         {Text{"inf"}, Text{"", ""}, kInf, std::int64_t{0}, false},
                         {Text{" x "}, Text{"x", ""}, -kInf, std::numeric_limits<std::int64_t>::min(), true},
                         {Text{"-0.5"}, Text{"x", ""}, kNan, std::numeric_limits<std::int64_t>::max(), true},
                         {Text{""}, Text{"x", ""}, -0.0, std::int64_t{1}, true},
                         {Text{"1e5"}, Text{"x", ""}, 1e300, std::int64_t{1}, true},
                         {Text{"-inf"}, Text{"x", ""}, -1e-5, std::int64_t{1}, true},
                         {Text{"\xC3\xA9"}, Text{"x", ""}, 5e-324, std::int64_t{1}, true}});
  CHECK(written(table, Format::csv) ==
        "t,s,d,i,b\n"
        "N/A,\"['a.pt', 'b.pt']\",1.0,-3,True\n"
        "inf,, inf,0,False\n"
        " x ,x, -inf,-9223372036854775808,True\n"
        "-0.5,x,Nan,9223372036854775807,True\n"
        ",x,-0.0,1,True\n"
        "1e5,x,1e+300,1,True\n"
        "-inf,x,-1e-05,1,True\n"
        "\xC3\xA9,x,5e-324,1,True\n");
}

// Each expectation is what csv.writer(quoting=QUOTE_MINIMAL, lineterminator="\n") of Python 3.13 writes.
TEST_CASE("csv quotes only what needs it") {
  CHECK(field("plain") == "plain");
  CHECK(field(" blanks ") == " blanks ");
  CHECK(field("it's") == "it's");
  CHECK(field("a;b c") == "a;b c");
  CHECK(field("a;b\tc") == "\"a;b\tc\"");
  CHECK(field("a,b") == "\"a,b\"");
  CHECK(field("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(field("\"") == "\"\"\"\"");
  CHECK(field("two\nlines") == "\"two\nlines\"");
  CHECK(field("two\rlines") == "\"two\rlines\"");
  CHECK(field("") == "");
}

TEST_CASE("csv fields that look like formulas or are no UTF-8 are made safe") {
  CHECK(field("=1+1") == "'=1+1");
  CHECK(field("=a,\"b\"") == "\"'=a,\"\"b\"\"\"");
  CHECK(field("a;=b") == "a;'=b");
  CHECK(field("a\t=b") == "\"a\t=b\"");
  CHECK(field("\xEF\xBC\x9D"
              "1") ==
        "'\xEF\xBC\x9D"
        "1");
  CHECK(field("a\xFF,") == "\"a\xEF\xBF\xBD,\"");
  CHECK(written(FakeTable({"=x", "a,b"}, {}), Format::csv) == "'=x,\"a,b\"\n");
}

TEST_CASE("a lone empty csv field is quoted, so that readers see the row") {
  CHECK(written(FakeTable({"a"}, {{Text{""}}, {Text{"x"}}}), Format::csv) == "a\n\"\"\nx\n");
}

TEST_CASE("csv of any text reads back") {
  std::mt19937 random(7);
  const std::string alphabet = "ab,\"\n\r '";
  std::vector<std::string> texts(3 * 200);
  for (std::string& text : texts) {
    text.resize(random() % 6);
    for (char& c : text) c = alphabet[random() % alphabet.size()];
  }
  std::vector<std::vector<Cell>> rows;
  std::vector<std::vector<std::string>> expected = {{"x", "y", "z"}};
  for (std::size_t i = 0; i < texts.size(); i += 3) {
    rows.push_back({Text{texts[i]}, Text{texts[i + 1]}, Text{texts[i + 2]}});
    expected.push_back({texts[i], texts[i + 1], texts[i + 2]});
  }
  CHECK(parse_csv(written(FakeTable({"x", "y", "z"}, rows), Format::csv)) == expected);
}

TEST_CASE("csv of many rows keeps them all in order") {
  constexpr std::size_t kRows = 20'000;
  const auto lines = parse_csv(written(CountingTable(kRows), Format::csv));
  REQUIRE(lines.size() == kRows + 1);
  bool right = true;
  for (std::size_t i = 0; i < kRows; ++i) {
    right = right && lines[i + 1][0] == fmt::format("name.{}", i) && lines[i + 1][1] == std::to_string(i);
  }
  CHECK(right);
}

}  // namespace msprobe::report_csv_test
