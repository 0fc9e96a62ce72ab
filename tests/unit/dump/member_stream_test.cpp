// SPDX-License-Identifier: Apache-2.0
#include "dump/member_stream.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "dump/dump_json.hpp"
#include "dump/python_json.hpp"
#include "dump/raw_entries.hpp"
#include "support/error.hpp"

using namespace msprobe;

namespace {

struct Content {
  std::vector<std::string> names;
  std::vector<std::string> values;
  std::string header;
  friend bool operator==(const Content&, const Content&) = default;
};

std::string header_text(const dump::Header& header) {
  return header.task + "|" + header.level + "|" + header.framework + "|" +
         (header.has_data ? "data" : "none");
}

/// What the reader that makes trees of everything finds; nothing if it refuses the text.
std::optional<Content> by_trees(const std::string& text) {
  Content content;
  try {
    const dump::Header header = dump::read_dump_json(*memory_source(text, "dump.json"),
                                                     [&](std::string_view name, const dump::Entry& entry) {
                                                       content.names.emplace_back(name);
                                                       content.values.push_back(entry.python_str(0));
                                                     });
    content.header = header_text(header);
  } catch (const FormatError&) {
    return std::nullopt;
  }
  return content;
}

/// The same by the scanner. Each value is also read back from its place in the file.
std::optional<Content> by_scan(const std::string& text) {
  Content content;
  const auto file = memory_source(text, "dump.json");
  try {
    const dump::Header header =
        dump::read_raw_entries(*file, [&](dump::MemberStream& stream, std::string_view name) {
          dump::IgnoreTokens ignore;
          const std::string_view value = stream.value(ignore);
          dump::Entry entry;
          dump::build_entry(value, entry, "dump.json", name);
          dump::Entry again;
          dump::read_entry_at(*file, stream.value_offset(), value.size(), again, name);
          CHECK(again.python_str(0) == entry.python_str(0));
          content.names.emplace_back(name);
          content.values.push_back(entry.python_str(0));
        });
    content.header = header_text(header);
  } catch (const FormatError&) {
    return std::nullopt;
  }
  return content;
}

std::string dump_with(const std::string& value) {
  return R"({"task": "statistics", "level": "L1", "framework": "pytorch", "data": {"a.0.forward": )" + value +
         R"(, "b.0.forward": {"output": [1]}}})";
}

const std::vector<std::string> kAccepted = {
    "{}",
    "[]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-12.5e+3",
    "1E5",
    "1e-400",
    "NaN",
    "-Infinity",
    "Infinity",
    R"("text")",
    R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")",
    "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"",
    R"({"k": [1, [2, {"x": null}], {}], "k": 2, "": 3})",
    " [\n\t1 ,\r\n 2 ] ",
    R"({"input_args": [{"type": "torch.Tensor", "Max": NaN}], "output": []})",
    R"("a string that is longer than the eight bytes looked at together")"};

const std::vector<std::string> kRefused = {"",        "{",           "[1,]",       "{\"a\":1,}",
                                           "[,1]",    "{1: 2}",      "{\"a\" 1}",  "{\"a\": }",
                                           "nul",     "tru",         "Nan",        "+1",
                                           "01",      "1.",          ".5",         "1e",
                                           "1e+",     "--1",         "'a'",        "\"\x01\"",
                                           "\"\\x\"", "\"\\u12g4\"", "\"\xFF\"",   "\"\xC3\"",
                                           "[1 2]",   "[1}",         "{\"a\": 1]", "\"\xED\xA0\x80\"",
                                           "]"};

}  // namespace

TEST_CASE("scanned entries are those that the tree reader finds") {
  for (const std::string& value : kAccepted) {
    CAPTURE(value);
    const auto expected = by_trees(dump_with(value));
    REQUIRE(expected);
    CHECK(by_scan(dump_with(value)) == expected);
  }
}

TEST_CASE("a number too large for a double is one, as it is for Python") {
  const auto scanned = by_scan(dump_with("1e999"));
  REQUIRE(scanned);
  CHECK(scanned->values[0] == "inf");
}

TEST_CASE("scanned values are refused where the tree reader refuses them") {
  for (const std::string& value : kRefused) {
    CAPTURE(value);
    REQUIRE_FALSE(by_trees(dump_with(value)));
    CHECK_FALSE(by_scan(dump_with(value)));
  }
}

TEST_CASE("what stands around the entries is judged alike") {
  for (const std::string text : {"",
                                 " ",
                                 "[]",
                                 "{}",
                                 "{\"data\": {}}",
                                 "{\"data\": null}",
                                 "{\"data\": []}",
                                 "{\"data\": 1}",
                                 "{\"data\": {}} x",
                                 "{\"data\": {}}\n ",
                                 "{\"task\": 1, \"data\": {}, \"level\": \"L\\u0030\"}",
                                 "{\"data\": {}, \"data\": {}}",
                                 "{\"other\": {\"data\": {\"a\": 1}}}",
                                 "{\"data\": {\"a\": {}},}",
                                 "{\"data\": {\"a\": {}}",
                                 "\"data\"",
                                 "null",
                                 "{\"framework\": \"mindspore\"}",
                                 "{,}",
                                 "{\"a\"}"}) {
    CAPTURE(text);
    const auto scanned = by_scan(text);
    // `"data": null` is a dump without entries, to the tree reader a broken one.
    if (text == "{\"data\": null}") {
      REQUIRE(scanned);
      CHECK(scanned->header == "|||none");
    } else {
      CHECK(scanned == by_trees(text));
    }
  }
}

TEST_CASE("a file cut off anywhere is refused") {
  const std::string text = dump_with(R"({"input_args": [{"Max": -1.5e3, "t": "\u00e9\\", "n": null}]})");
  REQUIRE(by_scan(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(by_scan(text.substr(0, size)));
  }
}

TEST_CASE("entries that cross the window, and one that is larger") {
  std::string data;
  for (int i = 0; i < 4000; ++i) {
    data += (i == 0 ? "" : ",\n ") + ("\"Torch.add." + std::to_string(i)) + ".forward\": {\"output\": [" +
            std::string(static_cast<std::size_t>(i % 97), ' ') + std::to_string(i) + ", \"" +
            std::string(static_cast<std::size_t>(i % 131), 'x') + "\\n\"]}";
    if (i == 2000) data += ", \"large\": [\"" + std::string(900'000, 'y') + "\"]";
  }
  const std::string text = "{\"task\": \"statistics\", \"data\": {" + data + "}}";
  const auto scanned = by_scan(text);
  REQUIRE(scanned);
  CHECK(scanned->names.size() == 4001);
  CHECK(scanned == by_trees(text));
}

TEST_CASE("nesting is limited as it is for the tree reader") {
  const auto nested = [](std::size_t depth) {
    return dump_with(std::string(depth, '[') + std::string(depth, ']'));
  };
  CHECK(by_scan(nested(402)) == by_trees(nested(402)));
  CHECK(by_scan(nested(402)));
  CHECK_FALSE(by_scan(nested(403)));
  CHECK_FALSE(by_trees(nested(403)));
  CHECK_FALSE(by_scan(dump_with(std::string(1'000'000, '['))));
}

TEST_CASE("errors name the file and the byte") {
  dump::IgnoreTokens ignore;
  const auto file = memory_source("{\"a\": [1, x]}", "dump.json");
  dump::MemberStream stream(*file);
  std::string key;
  stream.enter();
  REQUIRE(stream.next(key));
  CHECK_THROWS_WITH_AS(stream.value(ignore), "dump.json: not a JSON value (byte 10)", FormatError);
}

TEST_CASE("an entry that is not where it was is told") {
  const auto file = memory_source("{\"a\": [1, 2]}", "dump.json");
  dump::Entry entry;
  dump::read_entry_at(*file, 6, 6, entry, "a");
  CHECK(entry.python_str(0) == "[1, 2]");
  for (const auto& [offset, size] : {std::pair<std::uint64_t, std::uint64_t>{5, 6},
                                     {6, 5},
                                     {7, 6},
                                     {6, 8},
                                     {90, 1},
                                     {6, UINT64_MAX},
                                     {UINT64_MAX, 2}}) {
    CAPTURE(offset);
    CAPTURE(size);
    if (offset == 5) {
      dump::read_entry_at(*file, 5, 7, entry, "a");  // a blank in front is none of our business
      continue;
    }
    CHECK_THROWS_WITH_AS(dump::read_entry_at(*file, offset, size, entry, "a"),
                         doctest::Contains("was the file changed"), FormatError);
  }
}
