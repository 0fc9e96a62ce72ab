// SPDX-License-Identifier: Apache-2.0
#include "pairing/mapping_file.hpp"

#include <doctest/doctest.h>

#include <string>

#include "unit/support/complaint.hpp"

namespace msprobe::compare_mapping_file_test {

using namespace msprobe;
using namespace msprobe::pairing;

namespace {

template <typename Read>
std::string failure(Read&& read, std::string_view text) {
  return test::message_of([&] { read(*memory_source(text, "map.yaml")); });
}

std::string names_failure(std::string_view text) {
  return failure(read_name_mapping, text);
}
std::string api_failure(std::string_view text) {
  return failure(read_api_mapping, text);
}
std::string layer_failure(std::string_view text) {
  return failure(read_layer_mapping, text);
}

}  // namespace

TEST_CASE("a flat mapping keeps the order of the file") {
  const NameMapping mapping = read_name_mapping(
      *memory_source("b.x: c\n'a: b': \"d\"\n? long.key\n: e\n0: 1\nalso: &v v\nsame: *v\n", "map.yaml"));
  REQUIRE(mapping.entries().size() == 6);
  CHECK(mapping.entries()[0] == NameMapping::Entry("b.x", "c"));
  CHECK(mapping.entries()[1] == NameMapping::Entry("a: b", "d"));
  CHECK(*mapping.find("long.key") == "e");
  CHECK(*mapping.find("0") == "1");
  CHECK(*mapping.find("same") == "v");
  CHECK(mapping.find("c") == nullptr);
}

TEST_CASE("a file that is not a flat mapping is refused with its line") {
  CHECK(names_failure("") == "map.yaml: the file is empty");
  CHECK(names_failure("- a\n- b\n") == "map.yaml: line 1: the file must be a mapping of names to names");
  CHECK(names_failure("just text") == "map.yaml: line 1: the file must be a mapping of names to names");
  CHECK(names_failure("a: b\nc: [d]\n") == "map.yaml: line 2: 'c': must be a name, not a list");
  CHECK(names_failure("a: b\nc: {d: e}\n") == "map.yaml: line 2: 'c': must be a name, not a mapping");
  CHECK(names_failure("a: b\nc: ~\n") == "map.yaml: line 2: 'c': has no value");
  CHECK(names_failure("a: ''\n") == "map.yaml: line 1: 'a': has no value");
  CHECK(names_failure("a: b\nc: d\na: e\n") == "map.yaml: line 3: 'a': appears twice");
  CHECK(names_failure("? [a, b]\n: c\n") == "map.yaml: line 1: a list or mapping cannot be a name");
  CHECK(names_failure("x: &x y\n<<: *x\n") == "map.yaml: line 2: merge keys (<<) are not accepted here");
  CHECK(names_failure("a: b\n---\nc: d\n").find("second document") != std::string::npos);
  CHECK(names_failure("a: [\n").starts_with("map.yaml: line "));
  CHECK(names_failure("a: !!python/object:os.system [x]\n").find("is not supported") != std::string::npos);
  // Control characters of a key do not reach the terminal.
  CHECK(names_failure("\"a\\e[2J\": [x]\n").find('\x1b') == std::string::npos);
}

TEST_CASE("an api mapping is a list of rules or one rule") {
  const auto read = [](std::string_view text) { return read_api_mapping(*memory_source(text, "map.yaml")); };
  const auto rules = read(
      "- ms_api: Functional.a\n  pt_api: NPU.b\n  ms_args: [0, 1]\n  pt_args: [0, 2]\n  ms_outputs: [0]\n  "
      "pt_outputs: [1]\n- ms_api: Functional.c\n  pt_api: Torch.d\n");
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].target == "Functional.a");
  CHECK(rules[0].golden == "NPU.b");
  CHECK(*rules[0].sections[kInputs]->find("1") == "2");
  CHECK(*rules[0].sections[kOutputs]->find("0") == "1");
  CHECK_FALSE(rules[0].sections[kParameters].has_value());
  CHECK_FALSE(rules[1].sections[kInputs].has_value());
  const auto one = read("ms_api: F.a\npt_api: T.a\nms_output: [0]\npt_output: [0]\n");
  REQUIRE(one.size() == 1);
  CHECK(*one[0].sections[kOutputs]->find("0") == "0");
  // Lists that do not go together: a warning, as in the Python tool.
  CHECK(read("- {ms_api: a.a, pt_api: b.b, ms_args: [0, 1], pt_args: [0]}\n- {ms_api: c.c, pt_api: d.d}")
            .size() == 1);
}

TEST_CASE("a file that is not an api mapping is refused with its line") {
  CHECK(api_failure("text") == "map.yaml: line 1: the file must be a list of rules");
  CHECK(api_failure("- text\n") ==
        "map.yaml: line 1: an api mapping's rule must be a mapping of names to names");
  CHECK(api_failure("- ms_api: a.a\n") == "map.yaml: line 1: 'pt_api': is missing");
  CHECK(api_failure("- ms_api: a.a\n  pt_api: [b]\n") ==
        "map.yaml: line 2: 'pt_api': must be a name, not a list");
  CHECK(api_failure("- ms_api: a.a\n  pt_api: b.b\n  ms_args: 1\n  pt_args: [1]\n") ==
        "map.yaml: line 3: 'ms_args': must be a list");
  CHECK(api_failure("- ms_api: a.a\n  pt_api: b.b\n  ms_args: [0, 0]\n  pt_args: [0, 1]\n") ==
        "map.yaml: line 3: 'ms_args': 0 appears twice");
  CHECK(api_failure("- ms_api: a.a\n  pt_api: b.b\n  ms_arg: [0]\n") ==
        "map.yaml: line 3: 'ms_arg': unknown key");
  CHECK(api_failure("- ms_api: a.a\n  pt_api: b.b\n  ms_output: [0]\n  ms_outputs: [0]\n") ==
        "map.yaml: line 4: 'ms_outputs': appears twice");
}

TEST_CASE("a layer mapping is a mapping of mappings") {
  const LayerMapping mapping = read_layer_mapping(
      *memory_source("Cell:\n  net: module\nBlock:\n  a: x\n  a.b.c: y.z(Linear)\n  a.b: w\n", "map.yaml"));
  REQUIRE(mapping.contains("TopLayer"));
  CHECK(*mapping.at("TopLayer").paths.find("net") == "module");
  const LayerRules& block = mapping.at("Block");
  CHECK(*block.paths.find("a.b.c") == "y.z");
  CHECK(block.lengths.at("a") == std::vector<std::size_t>{3, 2, 1});
  CHECK(layer_failure("Block: name\n") == "map.yaml: line 1: 'Block' must be a mapping of names to names");
  CHECK(layer_failure("Block:\n  a: [b]\n") == "map.yaml: line 2: 'a': must be a name, not a list");
  CHECK(layer_failure("Block:\n  a: b\n  a: c\n") == "map.yaml: line 3: 'a': appears twice");
  CHECK(layer_failure("Cell: {a: b}\nTopLayer: {a: b}\n") == "map.yaml: line 2: 'TopLayer': appears twice");
}

TEST_CASE("aliases cannot explode, and files have limits") {
  // A thousand names for one block of a thousand paths would be a million rules.
  std::string text = "T0: &block {";
  for (int i = 0; i < 1000; ++i) text += "p" + std::to_string(i) + ": x, ";
  text += "}\n";
  for (int i = 1; i < 1000; ++i) text += "T" + std::to_string(i) + ": *block\n";
  CHECK(layer_failure(text).find("refused: aliases stand for too many rules") != std::string::npos);

  std::string list = "- &rule {ms_api: a.a, pt_api: b.b, ms_args: &x [";
  for (int i = 0; i < 1000; ++i) list += std::to_string(i) + ",";
  list += "], pt_args: *x}\n";
  for (int i = 1; i < 1000; ++i) list += "- *rule\n";
  CHECK(api_failure(list).find("refused: aliases stand for too many rules") != std::string::npos);

  std::string laughs = "a: &a [x,x]\n";
  for (char c = 'b'; c < 'z'; ++c) {
    const std::string before = std::string("*") + static_cast<char>(c - 1);
    laughs += std::string(1, c) + ": &" + c + " [" + before + "," + before + "]\n";
  }
  CHECK(names_failure(laughs) == "map.yaml: line 1: 'a': must be a name, not a list");
  CHECK(names_failure(std::string(50, '[')).find("nested too deeply") != std::string::npos);
}

}  // namespace msprobe::compare_mapping_file_test
