// SPDX-License-Identifier: Apache-2.0
#include "pack/value.hpp"

#include <doctest/doctest.h>

#include <string>

#include "dump/member_stream.hpp"
#include "unit/support/complaint.hpp"

namespace msprobe::pack::value_test {
namespace {

PackValue parsed(const std::string& json) {
  return from_entry(dump::read_json(json, "test.json"), 0, "test.json");
}

std::string refused(const std::string& json) {
  return test::message_of([&] { parsed(json); });
}

}  // namespace

TEST_CASE("values print as Python prints them") {
  // Printed by Python 3.11: repr() and json.dumps(indent=4) of the same object.
  const PackValue value = parsed(
      "{\"a\": [1, 2.5, 1e-05, true, null, \"it's\", \"\\u00e9\"], \"b\": {}, \"c\": [], \"d\": NaN, "
      "\"e\": -Infinity, \"f\": 123456789012345678901234567890, \"g\": {\"x\": {\"y\": -0.0}}}");
  CHECK(python_repr(value) ==
        "{'a': [1, 2.5, 1e-05, True, None, \"it's\", 'é'], 'b': {}, 'c': [], 'd': nan, 'e': -inf, "
        "'f': 123456789012345678901234567890, 'g': {'x': {'y': -0.0}}}");
  std::string json;
  append_json(json, value, 4);
  CHECK(json ==
        "{\n    \"a\": [\n        1,\n        2.5,\n        1e-05,\n        true,\n        null,\n"
        "        \"it's\",\n        \"\\u00e9\"\n    ],\n    \"b\": {},\n    \"c\": [],\n    \"d\": NaN,\n"
        "    \"e\": -Infinity,\n    \"f\": 123456789012345678901234567890,\n    \"g\": {\n        \"x\": {\n"
        "            \"y\": -0.0\n        }\n    }\n}");
  CHECK(python_str(PackValue::of_text("text")) == "text");
  CHECK(python_str(PackValue::of(true)) == "True");
}

TEST_CASE("a key that comes twice keeps its place and takes the last value") {
  CHECK(python_repr(parsed("{\"a\": 1, \"b\": 2, \"a\": 3}")) == "{'a': 3, 'b': 2}");
  PackValue map = PackValue::map();
  for (int i = 0; i < 100; ++i) map.push(std::to_string(i % 7), PackValue::of(std::int64_t{i}));
  map.settle();
  CHECK(python_repr(map) == "{'0': 98, '1': 99, '2': 93, '3': 94, '4': 95, '5': 96, '6': 97}");
}

TEST_CASE("text that is not JSON is refused with its name and place") {
  CHECK(refused("") == "test.json: it contains no JSON (byte 0)");
  CHECK(refused("  ") == "test.json: it contains no JSON (byte 2)");
  CHECK(refused("{\"a\": ") == "test.json: the JSON ends too early (truncated?) (byte 6)");
  CHECK(refused("[1, 2") == "test.json: the JSON ends too early (truncated?) (byte 5)");
  CHECK(refused("\"abc") == "test.json: the JSON ends too early (truncated?) (byte 4)");
  CHECK(refused("{} x") == "test.json: unexpected text after the end of the JSON (byte 3)");
  CHECK(refused("{'a': 1}").find("byte 1") != std::string::npos);
  CHECK(refused(std::string("{}\0", 3)).find("after the end") != std::string::npos);
  CHECK(refused(std::string(300, '[') + std::string(300, ']')) == "test.json: nested too deeply");
  CHECK(refused(std::string(100'000, '[')).find("nested too deep") != std::string::npos);
  CHECK(python_repr(parsed(" 12 ")) == "12");
  CHECK(python_repr(parsed("12")) == "12");
}

TEST_CASE("a flat map keeps the order of names") {
  FlatMap map;
  map.set("b", PackValue::of(std::int64_t{1}));
  map.set("a", PackValue::of(std::int64_t{2}));
  map.set("b", PackValue::of(std::int64_t{3}));
  REQUIRE(map.size() == 2);
  CHECK(map.items()[0].first == "b");
  CHECK(map.items()[0].second.text() == "3");
  CHECK(map.find("c") == nullptr);
}

}  // namespace msprobe::pack::value_test
