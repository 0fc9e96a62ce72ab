// SPDX-License-Identifier: Apache-2.0
#include "pack/yaml.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/text.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::pack::yaml_test {
namespace {

std::string read(const std::string& text, const YamlLimits& limits = {}) {
  return python_repr(read_yaml(text, "test.yaml", limits));
}

std::string refused(const std::string& text, const YamlLimits& limits = {}) {
  return test::message_of([&] { read(text, limits); });
}

const char* kind_name(const PackValue& value) {
  switch (value.kind()) {
    case PackValue::Type::null:
      return "null";
    case PackValue::Type::boolean:
      return "boolean";
    case PackValue::Type::integer:
      return "integer";
    case PackValue::Type::real:
      return "real";
    default:
      return "text";
  }
}

}  // namespace

TEST_CASE("plain scalars are what PyYAML makes of them") {
  std::ifstream in(test::in_source("tests/data/pack/yaml_scalars.json"));
  const nlohmann::json table = nlohmann::json::parse(in);
  REQUIRE(table.size() > 150);
  for (const auto& [text, expected] : table.items()) {
    const PackValue value = resolve_yaml_scalar(text);
    CAPTURE(text);
    CHECK(kind_name(value) == expected[0].get<std::string>());
    CHECK((value.is(PackValue::Type::null) ? "" : python_str(value)) == expected[1].get<std::string>());
  }
}

TEST_CASE("documents are what PyYAML makes of them") {
  // Each right side is repr(yaml.safe_load(left side)) of PyYAML 6.0.
  CHECK(read("") == "None");
  CHECK(read("# nothing\n") == "None");
  CHECK(read("a: {b: [1, x, 'y'], c: }") == "{'a': {'b': [1, 'x', 'y'], 'c': None}}");
  CHECK(read("a: |\n  two\n  lines\nb: >\n  one\n  line\n") == "{'a': 'two\\nlines\\n', 'b': 'one line\\n'}");
  CHECK(read("a: '12'\nb: \"on\"\nc: !!str 5\nd: !!float 3\n") ==
        "{'a': '12', 'b': 'on', 'c': '5', 'd': 3.0}");
  CHECK(read("? a\n: 1\n? b\n") == "{'a': 1, 'b': None}");
  CHECK(read("- &x [1]\n- *x\n") == "[[1], [1]]");
  CHECK(read("a: 1\na: 2\n") == "{'a': 2}");
}

TEST_CASE("merge keys: the map's own names win, earlier maps win over later ones") {
  CHECK(read("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz:\n  <<: [*x, *y]\n  c: 5\n") ==
        "{'x': {'a': 1, 'b': 2}, 'y': {'b': 3, 'c': 4}, 'z': {'b': 2, 'c': 5, 'a': 1}}");
  CHECK(read("x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y}\n") ==
        "{'x': {'a': 1}, 'y': {'a': 1, 'b': 2}, 'z': {'a': 1, 'b': 2}}");
  CHECK(read("'<<': 1") == "{'<<': 1}");
  CHECK(refused("<<: 1") == "test.yaml: line 1: only maps can be merged");
}

TEST_CASE("names that are no text become text") {
  CHECK(read("1: a\non: b\n~: c\n1.5: d\n") == "{'1': 'a', 'True': 'b', 'None': 'c', '1.5': 'd'}");
  CHECK(refused("[a, b]: 1") == "test.yaml: line 1: a list or map cannot be a name");
}

TEST_CASE("what cannot be read is refused with its line") {
  CHECK(refused("a: [1, 2\nb: 3\n").starts_with("test.yaml: line 2: "));
  CHECK(refused("a: 1\n---\nb: 2\n") == "test.yaml: line 2: a second document, but only one is expected");
  CHECK(refused("a: *x\n") == "test.yaml: line 1: an alias without an anchor");
  CHECK(refused("a: &x [1, *x]\n") == "test.yaml: line 1: an alias inside its own anchor");
  CHECK(refused("- &x 1\n- &x 2\n") == "test.yaml: line 2: a second anchor with the same name");
  CHECK(refused("a: !!python/object/apply:os.system [x]\n").find("is not supported") != std::string::npos);
  CHECK(refused("a: !!int x\n").find("is not supported") != std::string::npos);
  CHECK(refused("a: \"\\xff\xff\"\n").starts_with("test.yaml: line "));
}

TEST_CASE("nesting, size and expansion have limits") {
  CHECK(refused(std::string(101, '[') + std::string(101, ']')) ==
        "test.yaml: line 1: refused: nested too deeply");
  CHECK(refused(std::string(99, '[') + std::string(99, ']')) == "accepted");
  // Each line holds ten of the line before.
  std::string laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const std::string before = std::string("*") + static_cast<char>(c - 1);
    laughs += std::string(1, c) + ": &" + c + " [" + before;
    for (int i = 0; i < 9; ++i) laughs += "," + before;
    laughs += "]\n";
  }
  CHECK(refused(laughs).find("aliases expand to too many values") != std::string::npos);
  std::string merges = "a: &a {x: 1}\n";
  for (char c = 'b'; c < 'z'; ++c) {
    const std::string before = std::string("*") + static_cast<char>(c - 1);
    merges += std::string(1, c) + ": &" + c + " {<<: [" + before + "," + before + "]}\n";
  }
  CHECK(refused(merges).find("aliases expand to too many values") != std::string::npos);
  // An alias makes what it stands for deeper than it is written.
  std::string deep = "a0: &a0 [1]\n";
  for (int i = 1; i < 60; ++i)
    deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [[*a" + std::to_string(i - 1) + "]]\n";
  CHECK(refused(deep).find("nested too deeply") != std::string::npos);
  CHECK(refused("[1, 2, 3, 4]", {.max_nodes = 4}).find("too many values") != std::string::npos);
  CHECK(refused("[&a " + std::string(100, 'x') + ", *a, *a]", {.max_text = 250}).find("too many values") !=
        std::string::npos);
}

}  // namespace msprobe::pack::yaml_test
