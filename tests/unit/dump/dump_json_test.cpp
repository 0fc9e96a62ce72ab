// SPDX-License-Identifier: Apache-2.0
#include "dump/dump_json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "unit/support/complaint.hpp"

namespace msprobe::dump_dump_json_test {

using namespace msprobe;
using dump::Entry;
using dump::NodeKind;

namespace {

struct Read {
  dump::Header header;
  std::vector<std::pair<std::string, std::string>> entries;  // name, Python's str() of the value
};

Read read(std::string_view text) {
  Read result;
  result.header =
      dump::read_dump_json(*memory_source(text, "dump.json"), [&](std::string_view name, const Entry& entry) {
        result.entries.emplace_back(name, entry.python_str(0));
      });
  return result;
}

std::string failure(std::string_view text) {
  return test::message_of([&] { read(text); });
}

}  // namespace

TEST_CASE("dump.json: header and entries in any key order") {
  const Read result = read(R"({"data": {"b": {"x": [1, 2.50, true, null, "t"]}, "a": []}, "level": "mix",
                               "framework": "pytorch", "recorder": "msprobe 9.9", "task": "tensor", "extra": {"data": [1]},
                               "list": ["a", "b"], "scope": {"not": "a list"}})");
  CHECK(result.header.task == "tensor");
  CHECK(result.header.level == "mix");
  CHECK(result.header.framework == "pytorch");
  CHECK(result.header.recorder == "msprobe 9.9");
  CHECK(result.header.list == std::vector<std::string>{"a", "b"});
  CHECK(result.header.scope.empty());
  CHECK(result.header.has_data);
  REQUIRE(result.entries.size() == 2);
  CHECK(result.entries[0] == std::pair<std::string, std::string>("b", "{'x': [1, 2.5, True, None, 't']}"));
  CHECK(result.entries[1] == std::pair<std::string, std::string>("a", "[]"));
}

TEST_CASE("dump.json: what Python writes and JSON forbids") {
  dump::read_dump_json(
      *memory_source(R"({"data": {"e": [NaN, Infinity, -Infinity, 100000000000000000000, -0, 1e5, -0.0]}})"),
      [](std::string_view, const Entry& entry) {
        CHECK(entry.python_str(0) == "[nan, inf, -inf, 100000000000000000000, 0, 100000.0, -0.0]");
        std::vector<double> numbers;
        std::vector<NodeKind> kinds;
        entry.children(0, [&](Entry::Index child) {
          numbers.push_back(entry.number(child));
          kinds.push_back(entry.kind(child));
        });
        CHECK(std::isnan(numbers[0]));
        CHECK(numbers[1] == INFINITY);
        CHECK(numbers[2] == -INFINITY);
        CHECK(kinds[3] == NodeKind::integer);
        CHECK(kinds[5] == NodeKind::real);
      });
}

TEST_CASE("dump.json: duplicate keys keep the first place and the last value") {
  const Read result = read(R"({"data": {"e": {"a": 1, "b": 2, "a": 3}}})");
  CHECK(result.entries[0].second == "{'a': 3, 'b': 2}");
  std::string many = R"({"data": {"e": {)";
  for (int i = 0; i < 40; ++i) many += "\"k" + std::to_string(i % 20) + "\": " + std::to_string(i) + ",";
  many.back() = '}';
  dump::read_dump_json(*memory_source(many + "}}"), [](std::string_view, const Entry& entry) {
    CHECK(entry.number(entry.find(0, "k0")) == 20);
    CHECK(entry.number(entry.find(0, "k19")) == 39);
    int members = 0;
    entry.children(0, [&](Entry::Index) { ++members; });
    CHECK(members == 20);
  });
}

TEST_CASE("dump.json: a value longer than a read block survives") {
  const std::string name(700'000, 'n');
  const std::string value(1'200'000, 'v');
  const Read result = read("{\"data\": {\"" + name + "\": \"" + value + "\"}}");
  CHECK(result.entries[0].first == name);
  CHECK(result.entries[0].second == value);
}

TEST_CASE("dump.json: broken files are one clear message with file and place") {
  CHECK(failure("") == "dump.json: the file is empty (byte 0)");
  CHECK(failure("[]") == "dump.json: the top level is not an object (byte 0)");
  CHECK(failure("3").starts_with("dump.json: the top level is not an object"));
  CHECK(failure(R"({"data": 3})").starts_with("dump.json: 'data' is not an object"));
  CHECK(failure(R"({"data": []})").starts_with("dump.json: 'data' is not an object"));
  CHECK(failure(R"({"data": {}, "data": {}})").starts_with("dump.json: 'data' appears twice"));
  CHECK(failure(R"({"data": {"a": [1, 2)") == "dump.json: the JSON ends too early (truncated?) (byte 20)");
  CHECK(failure(R"({"data": {"a": tru}})").find("not a JSON value") != std::string::npos);
  CHECK(failure("{\"data\": {\"a\xff\": 1}}").find("text that is not UTF-8") != std::string::npos);
  CHECK(failure(R"({} x)").find("unexpected text after the end") != std::string::npos);
}

TEST_CASE("dump.json: nesting is limited, not the machine's stack") {
  const auto nested = [](int levels) {
    return "{\"data\": {\"e\": " + std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']') + "}}";
  };
  CHECK(failure(nested(400)) == "accepted");
  CHECK(failure(nested(500)).find("nested too deeply (byte ") != std::string::npos);
  CHECK(failure(nested(3'000'000)).find("nested too deeply (byte ") != std::string::npos);
  CHECK(failure("{\"other\": " + std::string(1'000'000, '[')).find("nested too deeply (byte ") !=
        std::string::npos);
}

}  // namespace msprobe::dump_dump_json_test
