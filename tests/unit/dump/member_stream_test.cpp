// SPDX-License-Identifier: Apache-2.0
#include "dump/member_stream.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "dump/dump_json.hpp"
#include "dump/entry.hpp"
#include "support/error.hpp"

namespace msprobe::dump_member_stream_test {

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

/// The content that a reader of trees gets; nothing if the text is refused.
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

/// The content that a reader of values gets. Each value is also read back from its place in the file.
std::optional<Content> by_values(const std::string& text) {
  Content content;
  const auto file = memory_source(text, "dump.json");
  try {
    const dump::Header header =
        dump::read_values(*file, [&](dump::MemberStream& stream, std::string_view name) {
          const std::string_view value = stream.skip();
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

struct Accepted {
  std::string json;
  std::string value;  // `str()` of what Python's json makes of it
};
const std::vector<Accepted> kAccepted = {
    {"{}", "{}"},
    {"[]", "[]"},
    {"null", "None"},
    {"true", "True"},
    {"false", "False"},
    {"0", "0"},
    {"-0", "0"},
    {"-12.5e+3", "-12500.0"},
    {"1E5", "100000.0"},
    {"1e-400", "0.0"},
    {"1e999", "inf"},
    {"NaN", "nan"},
    {"-Infinity", "-inf"},
    {"Infinity", "inf"},
    {R"("text")", "text"},
    {R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")",
     "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
    {"\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
    {R"("\ud800 \ude00\ud83d")", "\xED\xA0\x80 \xED\xB8\x80\xED\xA0\xBD"},
    {R"({"k": [1, [2, {"x": null}], {}], "k": 2, "": 3})", "{'k': 2, '': 3}"},
    {R"({"\u006b": 1, "b": "\n", "k": "c"})", "{'k': 'c', 'b': '\\n'}"},
    {" [\n\t1 ,\r\n 2 ] ", "[1, 2]"},
    {R"({"input_args": [{"type": "torch.Tensor", "Max": NaN}], "output": []})",
     "{'input_args': [{'type': 'torch.Tensor', 'Max': nan}], 'output': []}"},
    {R"("a string that is longer than the eight bytes looked at together")",
     "a string that is longer than the eight bytes looked at together"}};

const std::vector<std::string> kRefused = {
    "",     "{",   "[1,]",      "{\"a\":1,}", "[,1]",    "{1: 2}",      "{\"a\" 1}",  "{\"a\": }",
    "nul",  "tru", "Nan",       "+1",         "01",      "1.",          ".5",         "1e",
    "1e+",  "--1", "'a'",       "\"\x01\"",   "\"\\x\"", "\"\\u12g4\"", "\"\xFF\"",   "\"\xC3\"",
    "-NaN", "Inf", "+Infinity", "-",          "[1 2]",   "[1}",         "{\"a\": 1]", "\"\xED\xA0\x80\"",
    "]"};

}  // namespace

TEST_CASE("values are read as Python reads them") {
  for (const Accepted& each : kAccepted) {
    CAPTURE(each.json);
    const Content expected{
        {"a.0.forward", "b.0.forward"}, {each.value, "{'output': [1]}"}, "statistics|L1|pytorch|data"};
    CHECK(by_trees(dump_with(each.json)) == expected);
    CHECK(by_values(dump_with(each.json)) == expected);
  }
}

TEST_CASE("what Python does not read is refused") {
  for (const std::string& value : kRefused) {
    CAPTURE(value);
    CHECK_FALSE(by_trees(dump_with(value)));
    CHECK_FALSE(by_values(dump_with(value)));
  }
}

TEST_CASE("what stands around the entries") {
  struct Case {
    std::string text;
    std::optional<std::string> header;  // nothing: refused
  };
  const std::vector<Case> cases = {{"", {}},
                                   {" ", {}},
                                   {"[]", {}},
                                   {"{}", "|||none"},
                                   {"{\"data\": {}}", "|||data"},
                                   {"{\"data\": null}", "|||none"},  // a dump without entries
                                   {"{\"data\": []}", {}},
                                   {"{\"data\": 1}", {}},
                                   {"{\"data\": nul}", {}},
                                   {"{\"data\": {}} x", {}},
                                   {"{\"data\": {}}\n ", "|||data"},
                                   {"{\"task\": 1, \"data\": {}, \"level\": \"L\\u0030\"}", "|L0||data"},
                                   {"{\"data\": {}, \"data\": {}}", {}},
                                   {"{\"data\": {}, \"data\": null}", {}},
                                   {"{\"other\": {\"data\": {\"a\": 1}}}", "|||none"},
                                   {"{\"data\": {\"a\": {}},}", {}},
                                   {"{\"data\": {\"a\": {}}", {}},
                                   {"\"data\"", {}},
                                   {"null", {}},
                                   {"{\"framework\": \"mindspore\"}", "||mindspore|none"},
                                   {"{,}", {}},
                                   {"{\"a\"}", {}}};
  for (const Case& each : cases) {
    CAPTURE(each.text);
    const auto content = by_values(each.text);
    CHECK(content.has_value() == each.header.has_value());
    if (content && each.header) CHECK(content->header == *each.header);
    CHECK(by_trees(each.text) == content);
  }
}

TEST_CASE("a file cut off anywhere is refused") {
  const std::string text = dump_with(R"({"input_args": [{"Max": -1.5e3, "t": "\u00e9\\", "n": null}]})");
  REQUIRE(by_values(text));
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(by_values(text.substr(0, size)));
  }
}

TEST_CASE("entries that cross the window, and one that is larger") {
  std::string data;
  Content expected;
  expected.header = "statistics|||data";
  for (int i = 0; i < 4000; ++i) {
    data += (i == 0 ? "" : ",\n ") + ("\"Torch.add." + std::to_string(i)) + ".forward\": {\"output\": [" +
            std::string(static_cast<std::size_t>(i % 97), ' ') + std::to_string(i) + ", \"" +
            std::string(static_cast<std::size_t>(i % 131), 'x') + "\\n\"]}";
    expected.names.push_back("Torch.add." + std::to_string(i) + ".forward");
    expected.values.push_back("{'output': [" + std::to_string(i) + ", '" +
                              std::string(static_cast<std::size_t>(i % 131), 'x') + "\\n']}");
    if (i != 2000) continue;
    expected.names.emplace_back("large");
    expected.values.push_back("['" + std::string(900'000, 'y') + "']");
    data += ", \"large\": [\"" + std::string(900'000, 'y') + "\"]";
  }
  const std::string text = "{\"task\": \"statistics\", \"data\": {" + data + "}}";
  CHECK(by_values(text) == expected);
  CHECK(by_trees(text) == expected);
}

TEST_CASE("nesting is limited, not the machine's stack") {
  const auto nested = [](std::size_t depth) {
    return dump_with(std::string(depth, '[') + std::string(depth, ']'));
  };
  for (const auto& read : {by_trees, by_values}) {
    CHECK(read(nested(402)));
    CHECK_FALSE(read(nested(403)));
    CHECK_FALSE(read(dump_with(std::string(1'000'000, '['))));
  }
}

TEST_CASE("an entry that keeps its texts outlives the reader") {
  dump::Entry kept;
  {
    const auto file = memory_source(R"({"a": {"k\u0065y": ["value", "\n", 2.5]}})", "dump.json");
    dump::MemberStream stream(*file);
    std::string key;
    stream.enter();
    REQUIRE(stream.next(key));
    stream.entry(kept, key);
    kept.keep();
  }
  const dump::Entry copy = kept;
  kept.clear();
  CHECK(copy.python_str(0) == "{'key': ['value', '\\n', 2.5]}");
}

TEST_CASE("errors name the file and the byte") {
  const auto file = memory_source("{\"a\": [1, x]}", "dump.json");
  dump::MemberStream stream(*file);
  std::string key;
  stream.enter();
  REQUIRE(stream.next(key));
  CHECK_THROWS_WITH_AS(stream.skip(), "dump.json: not a JSON value (byte 10)", FormatError);
}

TEST_CASE("an entry that is not where it was is an error") {
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
      dump::read_entry_at(*file, 5, 7, entry, "a");  // a blank before the entry does not matter
      continue;
    }
    CHECK_THROWS_WITH_AS(dump::read_entry_at(*file, offset, size, entry, "a"),
                         doctest::Contains("was the file changed"), FormatError);
  }
}

}  // namespace msprobe::dump_member_stream_test
