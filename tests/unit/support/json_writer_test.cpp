// SPDX-License-Identifier: Apache-2.0
#include "support/json_writer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace msprobe::support_json_writer_test {

using namespace msprobe;

namespace {

std::string written(const JsonStyle& style, int level = 0) {
  JsonWriter json(style, level);
  json.open_object();
  json.member("a", std::vector<int>{1, -2});
  json.member("é", std::map<std::string, bool>{{"x", true}, {"y", false}});
  json.key("empty");
  json.open_list();
  json.close();
  json.key("list");
  json.open_list();
  json.value("text");
  json.value(0.1);
  json.element();
  json.text() += "raw";
  json.open_object();
  json.close();
  json.null();
  json.close();
  json.close();
  return json.take();
}

std::string quoted(std::string_view text, JsonText style) {
  std::string out;
  append_json_string(out, text, style);
  return out;
}

}  // namespace

// The expected texts are those of json.dumps(value, indent=...) of Python 3.11 ("raw" and true, false aside).
TEST_CASE("values are laid out as Python lays them out") {
  CHECK(written({}) ==
        "{\"a\": [1, -2], \"\\u00e9\": {\"x\": true, \"y\": false}, \"empty\": [], "
        "\"list\": [\"text\", 0.1, raw, {}, null]}");
  CHECK(written({.compact = true, .text = JsonText::utf8}) ==
        "{\"a\":[1,-2],\"é\":{\"x\":true,\"y\":false},\"empty\":[],\"list\":[\"text\",0.1,raw,{},null]}");
  CHECK(written({.indent = 2}) ==
        "{\n  \"a\": [\n    1,\n    -2\n  ],\n  \"\\u00e9\": {\n    \"x\": true,\n    \"y\": false\n  },\n"
        "  \"empty\": [],\n  \"list\": [\n    \"text\",\n    0.1,\n    raw,\n    {},\n    null\n  ]\n}");
}

TEST_CASE("a value that stands deeper in its file is indented by as much") {
  JsonWriter json({.indent = 1}, 2);
  json.open_list();
  json.value(1);
  json.close();
  CHECK(json.take() == "[\n   1\n  ]");
}

TEST_CASE("an item that came to nothing leaves no trace") {
  JsonWriter json;
  json.open_list();
  json.value(1);
  const JsonWriter::Mark mark = json.mark();
  json.element();
  json.text() += "half a val";
  json.go_back(mark);
  json.value(std::array<std::uint64_t, 1>{UINT64_MAX});
  json.close();
  CHECK(json.take() == "[1, [18446744073709551615]]");
}

TEST_CASE("numbers are spelled as Python spells them") {
  JsonWriter json;
  const double infinity = std::numeric_limits<double>::infinity();
  json.value(std::vector<double>{1, -0.0, 1e16, 1e15, 1e-5, 0.0001, infinity, -infinity,
                                 std::numeric_limits<double>::quiet_NaN()});
  CHECK(json.take() == "[1.0, -0.0, 1e+16, 1000000000000000.0, 1e-05, 0.0001, Infinity, -Infinity, NaN]");
}

TEST_CASE("a character is escaped wherever it stands") {
  const std::map<std::string, std::string> spelled = {{"\"", "\\\""},
                                                      {"\\", "\\\\"},
                                                      {"\n", "\\n"},
                                                      {"\x1f", "\\u001f"},
                                                      {std::string(1, '\0'), "\\u0000"},
                                                      {"\x7f", "\\u007f"},
                                                      {"\u00e9", "\\u00e9"},
                                                      {"\xff", "\\udcff"},
                                                      {"~", "~"},
                                                      {" ", " "}};
  for (const auto& [character, escaped] : spelled) {
    for (std::size_t place = 0; place < 20; ++place) {
      const std::string front(place, '!');
      const std::string back = std::string(20 - place, '}') + character;
      std::string out;
      append_json_string(out, front + character + back);
      CHECK(out == '"' + front + escaped + std::string(20 - place, '}') + escaped + '"');
    }
  }
}

TEST_CASE("text stays UTF-8 where it is wanted so, and is valid whatever the bytes") {
  CHECK(quoted("\"\\\b\f\n\r\t\x01\x7F~é😀", JsonText::utf8) ==
        "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u007f~é😀\"");
  CHECK(quoted("a\xFF\xED\xA0\x80z", JsonText::utf8) == "\"a\uFFFD\uFFFD\uFFFD\uFFFDz\"");
  CHECK(quoted("a\xFF\xED\xA0\x80z", JsonText::ascii) == "\"a\\udcff\\ud800z\"");
}

}  // namespace msprobe::support_json_writer_test
