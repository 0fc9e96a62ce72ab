// SPDX-License-Identifier: Apache-2.0
#include "dump/stack_json.hpp"

#include <doctest/doctest.h>

#include "support/error.hpp"

namespace msprobe::dump_stack_json_test {

using namespace msprobe;

namespace {

dump::StackTable read(std::string_view text) {
  return dump::read_stack_json(*memory_source(text, "stack.json"));
}

}  // namespace

TEST_CASE("stack.json: the old layout, entry to frames") {
  const auto table = read(R"({"a.0.forward": ["one", "two"], "b.0.forward": [], "c": 3})");
  REQUIRE(table.find("a.0.forward"));
  CHECK(*table.find("a.0.forward") == std::vector<std::string>{"one", "two"});
  REQUIRE(table.find("b.0.forward"));
  CHECK(table.find("b.0.forward")->empty());
  CHECK_FALSE(table.find("c"));
}

TEST_CASE("stack.json: the new layout, groups of entries that share frames") {
  const auto table = read(
      R"({"0": [["a", "b"], ["f1"]], "1": [["c"], []], "2": [["d"]], "3": "x", "4": [["e"], ["f"], []]})");
  CHECK(*table.find("a") == std::vector<std::string>{"f1"});
  CHECK(table.find("a") == table.find("b"));
  CHECK(table.find("c")->empty());
  CHECK_FALSE(table.find("d"));
  CHECK_FALSE(table.find("e"));
  CHECK_FALSE(table.find("0"));
}

TEST_CASE("stack.json: the key 0 with nothing in it keeps the old layout") {
  const auto table = read(R"({"0": [], "a": ["f"]})");
  REQUIRE(table.find("a"));
  CHECK(*table.find("a") == std::vector<std::string>{"f"});
}

TEST_CASE("stack.json: broken files") {
  CHECK_THROWS_WITH_AS(read("[]"), "stack.json: the top level is not an object (byte 0)", FormatError);
  CHECK_THROWS_AS(read("\"text\""), FormatError);
  CHECK_THROWS_AS(read("{\"a\": [\"x\""), FormatError);
  CHECK_THROWS_WITH_AS(read("{\"a\": " + std::string(100'000, '[')), doctest::Contains("nested too deep"),
                       FormatError);
}

TEST_CASE("file, line and code of a frame") {
  const auto parts = [](std::string_view frame) {
    const auto found = dump::source_line(frame);
    return found
               ? std::string(found->file) + "|" + std::string(found->number) + "|" + std::string(found->code)
               : std::string("none");
  };
  CHECK(parts("/a b/c, d.py, line 7, in f: x = g(y): z") == "/a b/c, d.py|7|x = g(y): z");
  CHECK(parts("a.py, line 7, in f") == "a.py|7|");
  CHECK(parts("a.py, line 7") == "a.py|7|");
  for (const char* const other : {"", ", line 7", "a.py, line x, in f", "a.py, line 7 of 9", "a.py:7"}) {
    CAPTURE(other);
    CHECK(parts(other) == "none");
  }
}

}  // namespace msprobe::dump_stack_json_test
