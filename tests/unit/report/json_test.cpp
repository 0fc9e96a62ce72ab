// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "unit/report/fake_table.hpp"

namespace msprobe::report_json_test {

using namespace msprobe;
using namespace msprobe::report;
using nlohmann::json;
using test::CountingTable;
using test::FakeTable;
using test::kInf;
using test::kNan;
using test::written;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

json first_value(Cell cell) {
  return json::parse(written(FakeTable({"k"}, {{cell}}), Format::jsonl)).at("k");
}

}  // namespace

TEST_CASE("jsonl holds an object a line, keys in the order of the columns") {
  const FakeTable table({"NPU Name", "Max diff", "ok"}, {{Text{"a"}, 0.5, true}, {Text{"b"}, 1e-5, false}});
  CHECK(written(table, Format::jsonl) ==
        "{\"NPU Name\": \"a\", \"Max diff\": 0.5, \"ok\": true}\n"
        "{\"NPU Name\": \"b\", \"Max diff\": 1e-05, \"ok\": false}\n");
  CHECK(written(FakeTable({"a"}, {}), Format::jsonl).empty());
}

TEST_CASE("json is one document") {
  const json document = json::parse(written(CountingTable(3), Format::json));
  CHECK(document.at("columns") == json({"Name", "Index", "Half", "Even"}));
  REQUIRE(document.at("rows").size() == 3);
  CHECK(document["rows"][1] == json({{"Name", "name.1"}, {"Index", 1}, {"Half", 0.5}, {"Even", false}}));
  CHECK(json::parse(written(FakeTable({"a"}, {}), Format::json)) ==
        json({{"columns", {"a"}}, {"rows", json::array()}}));
  CHECK(json::parse(written(FakeTable({}, {}), Format::json)).at("columns").empty());
}

TEST_CASE("json numbers keep every bit, others are words") {
  CHECK(first_value(0.1 + 0.2) == 0.1 + 0.2);
  CHECK(first_value(1e300) == 1e300);
  CHECK(first_value(5e-324) == 5e-324);
  CHECK(first_value(3.0).is_number_float());
  CHECK(std::signbit(first_value(-0.0).get<double>()));
  CHECK(first_value(std::int64_t{9007199254740993}) == 9007199254740993);
  CHECK(first_value(kInf) == "inf");
  CHECK(first_value(-kInf) == "-inf");
  CHECK(first_value(kNan) == "Nan");
  CHECK(first_value(Text{"1.5"}) == "1.5");
}

TEST_CASE("json embeds structured cells and keeps an object on its line") {
  CHECK(first_value(Text{"['a']", "[\"a\"]"}) == json::array({"a"}));
  CHECK(first_value(Text{"none", ""}) == "none");
  const std::vector<std::string> texts = {"a \"b\"", "c\n", "\xff"};
  CHECK(first_value(Text{"['a']", {}, &texts}) == json::array({"a \"b\"", "c\n", "\xEF\xBF\xBD"}));
  const std::vector<std::string> none;
  CHECK(first_value(Text{"[]", {}, &none}) == json::array());
  const std::string bytes = written(FakeTable({"k"}, {{Text{"x", "[1,\n\r\n 2]"}}}), Format::jsonl);
  CHECK(lines_of(bytes).size() == 1);
  CHECK(json::parse(bytes).at("k") == json::array({1, 2}));
}

TEST_CASE("json strings are valid whatever the bytes") {
  std::string every;
  for (int c = 0; c < 0x80; ++c) every += static_cast<char>(c);
  CHECK(first_value(Text{every}) == every);
  CHECK(first_value(Text{"\xE4\xB8\xAD\xF0\x9F\x98\x80"}) == "\xE4\xB8\xAD\xF0\x9F\x98\x80");
  CHECK(first_value(Text{"a\xFF\xED\xA0\x80\xE4"}) ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  const FakeTable table({"a\"\n\xFF"}, {{Text{"v"}}});
  CHECK(json::parse(written(table, Format::json))["rows"][0].at("a\"\n\xEF\xBF\xBD") == "v");
  CHECK(lines_of(written(FakeTable({"k"}, {{Text{"a\nb"}}}), Format::jsonl)).size() == 1);
}

TEST_CASE("json of many rows keeps them all in order") {
  constexpr std::size_t kRows = 20'000;
  const auto lines = lines_of(written(CountingTable(kRows), Format::jsonl));
  const json document = json::parse(written(CountingTable(kRows), Format::json));
  REQUIRE(lines.size() == kRows);
  REQUIRE(document["rows"].size() == kRows);
  bool right = true;
  for (std::size_t i = 0; i < kRows; ++i) {
    right = right && document["rows"][i]["Index"] == i;
    if (i % 1000 == 0) right = right && json::parse(lines[i]) == document["rows"][i];
  }
  CHECK(right);
}

}  // namespace msprobe::report_json_test
