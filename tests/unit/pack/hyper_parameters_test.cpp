// SPDX-License-Identifier: Apache-2.0
#include "pack/hyper_parameters.hpp"
#include "pack/several_values.hpp"

#include <doctest/doctest.h>

#include <string>

#include "pack/shell_script.hpp"
#include "pack/yaml.hpp"
#include "support/error.hpp"

namespace msprobe::pack::hyper_parameters_test {
namespace {

std::string shown(const FlatMap& map) {
  PackValue value = PackValue::map();
  for (const auto& [name, each] : map.items()) value.push(name, each);
  return python_repr(value);
}

FlatMap from_yaml(const std::string& text) {
  return flatten(read_yaml(text, "t.yaml"), "t.yaml");
}

}  // namespace

TEST_CASE("nested names are joined, lists of plain values stay whole") {
  CHECK(shown(from_yaml(
            "a: {b: 1, c: {d: x}}\ne: [1, [2, {f: 3}], on]\ng: [1, null]\nh: []\ni: {}\nj: null\n")) ==
        "{'a.b': 1, 'a.c.d': 'x', 'e': [1, [2, {'f': 3}], True], 'g.0': 1, 'h': []}");
  CHECK(shown(from_yaml("just text")) == "{}");
  CHECK(shown(from_yaml("a.b: 1\na: {b: 2}\n")) == "{'a.b': 2}");
}

TEST_CASE("nested names cannot make text without end") {
  const std::string name(60'000, 'x');
  std::string text = "? " + name + "\n:\n";
  for (int i = 0; i < 1200; ++i) text += " k" + std::to_string(i) + ": 1\n";
  CHECK_THROWS_WITH_AS(from_yaml(text), "t.yaml: refused: its nested names are too long in total",
                       FormatError);
}

TEST_CASE("a name with several values gets them all, each once") {
  FlatMap merged = from_yaml("a: 1\nb: x\n");
  merge(merged, from_yaml("a: 2\nb: x\n"));
  merge(merged, from_yaml("a: 1\n"));
  merge(merged, from_yaml("a: [3]\nc: 4\n"));
  CHECK(shown(merged) ==
        "{'a': {'description': 'duplicate_value', 'values': [1, 2, [3]]}, 'b': 'x', 'c': 4}");
  // One is not true, and 1 is not 1.0.
  FlatMap kinds = from_yaml("a: 1\n");
  merge(kinds, from_yaml("a: on\n"));
  merge(kinds, from_yaml("a: 1.0\n"));
  CHECK(shown(kinds) == "{'a': {'description': 'duplicate_value', 'values': [1, True, 1.0]}}");
}

TEST_CASE("options of a command") {
  const auto options = [](std::vector<std::string> words) {
    return shown(options_of(Launch{std::move(words), true}));
  };
  CHECK(options({"torchrun", "--standalone", "train.py", "--lr", "-1e-3", "--flag", "--list", "a", "b",
                 "--eq=x=y", "--empty="}) ==
        "{'standalone': True, 'lr': '-1e-3', 'flag': True, 'list': ['a', 'b'], 'eq': 'x=y', 'empty': ''}");
  CHECK(options({"python", "-u", "t.py", "--a", "1", "-v", "x", "--", "y"}) == "{'a': '1'}");
  CHECK(options({"python", "-m", "verl.trainer", "actor.lr=1", "+x.y=[1,2]", "++z=", "=w", "a b=1"}) ==
        "{'actor.lr': '1', 'x.y': '[1,2]', 'z': ''}");
}

}  // namespace msprobe::pack::hyper_parameters_test
