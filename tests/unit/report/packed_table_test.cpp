// SPDX-License-Identifier: Apache-2.0
#include "report/packed_table.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.hpp"
#include "unit/report/fake_table.hpp"

namespace msprobe::packed_table_test {

using namespace msprobe::report;
using test::FakeTable;
using test::kInf;
using test::kNan;
using test::written;

TEST_CASE("a table that travelled is written as if it had not") {
  const std::vector<std::string> frames = {"File a.py, line 1", "\xff not UTF-8"};
  const FakeTable table({"text", "structured", "list", "real", "integer", "flag", "spelled"},
                        {{Text{"a,\"b\"\n"}, Text{"[1]", "[1]"}, Text{"x", "", &frames}, 0.1,
                          std::int64_t{-5}, true, Spelled{Spelled::NumberForm::percent, 12.5, 0}},
                         {Text{""}, Text{"[1]", "[1]"}, Text{"x", "", &frames}, kNan, INT64_MIN, false,
                          Spelled{Spelled::NumberForm::integer, 3, 3}},
                         {Text{"a,\"b\"\n"}, Text{"", "{}"}, Text{"y", "[]"}, -kInf, std::int64_t{0}, true,
                          Spelled{Spelled::NumberForm::real, -0.0, 0}}});
  TableStore store("-");
  for (const auto& other :
       {unpack_table(pack_table(table)), store.add(table), store.add(*unpack_table(pack_table(table)))}) {
    for (std::size_t i = 0; i < table.rows(); ++i) CHECK(other->severity(i) == table.severity(i));
    for (const Format format : {Format::csv, Format::json, Format::jsonl})
      CHECK(written(*other, format) == written(table, format));
  }
}

TEST_CASE("rows of many stored tables are read in any order, their texts stay while they are held") {
  TableStore store("-");
  std::vector<std::shared_ptr<const Table>> tables;
  for (int i = 0; i < 20; ++i) {
    const std::string text = "table " + std::to_string(i) + ", longer than a string holds without memory";
    tables.push_back(
        store.add(FakeTable({"text", "number"}, {{Text{text}, std::int64_t{i}}, {Text{"end"}, 0.5}})));
  }
  std::vector<Cell> held;
  Scratch holds;
  tables[7]->row(0, held, holds);
  for (int i = 19; i >= 0; --i) {
    std::vector<Cell> cells;
    Scratch scratch;
    tables[static_cast<std::size_t>(i)]->row(1, cells, scratch);
    tables[static_cast<std::size_t>(i)]->row(0, cells, scratch);
    CHECK(plain_text(cells[0]).starts_with("table " + std::to_string(i) + ","));
    CHECK(std::get<std::int64_t>(cells[1]) == i);
  }
  CHECK(plain_text(held[0]) == "table 7, longer than a string holds without memory");
}

TEST_CASE("a table for which the disk has no room is an error, and so are bytes that end early") {
  TableStore store("/nonexistent/folder/result.csv");
  const FakeTable table({"text"}, {{Text{"a"}}});
  CHECK_THROWS_AS(store.add(table), IoError);
  const std::string bytes = pack_table(table);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_THROWS_AS(unpack_table(std::string_view(bytes).substr(0, size)), FormatError);
}

TEST_CASE("bytes that were changed are refused, or are another table") {
  const std::vector<std::string> frames = {"File a.py, line 1"};
  const FakeTable table(
      {"text", "list", "spelled"},
      {{Text{"a"}, Text{"x", "[1]", &frames}, Spelled{Spelled::NumberForm::percent, 12.5, 0}},
       {Text{"b"}, Text{"y", "[]", &frames}, Spelled{Spelled::NumberForm::real, 1, 0}}});
  const std::string bytes = pack_table(table);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int byte : {0, 1, 2, 9, 127, 255}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(byte);
      try {
        const std::shared_ptr<const Table> other = unpack_table(changed);
        std::vector<Cell> cells;
        Scratch scratch;
        for (std::size_t i = 0; i < other->rows(); ++i) {
          other->row(i, cells, scratch);
          static_cast<void>(other->severity(i));
          for (const Cell& cell : cells) static_cast<void>(plain_text(cell));
        }
      } catch (const FormatError&) {
        ++refused;
      }
    }
  }
  CHECK(refused > 3 * bytes.size());
}

}  // namespace msprobe::packed_table_test
