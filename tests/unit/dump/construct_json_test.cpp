// SPDX-License-Identifier: Apache-2.0
#include "dump/construct_json.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "support/error.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::dump_construct_json_test {

using namespace msprobe;

namespace {

using Names = std::vector<std::string>;

dump::ConstructTable read(const std::string& text) {
  return dump::read_construct_json(*memory_source(text, "construct.json"));
}

}  // namespace

TEST_CASE("construct.json: from the outermost module to the entry") {
  const auto table = read(R"({
    "Torch.exp.0.forward": "Module.net.fc.Linear.forward.0",
    "Module.net.fc.Linear.forward.0": ["Module.net.Net.forward.0", 3],
    "Module.net.Net.forward.0": null,
    "Torch.a.0.forward": "", "Torch.b.0.forward": [null, 1], "Torch.c.0.forward": ["optimizer", 0],
    "megatron_micro_step_number": 3})");
  CHECK(table.chain("Torch.exp.0.forward") ==
        Names{"Module.net.Net.forward.0", "Module.net.fc.Linear.forward.0", "Torch.exp.0.forward"});
  CHECK(table.chain("Torch.a.0.forward") == Names{"Torch.a.0.forward"});
  CHECK(table.chain("Torch.b.0.forward") == Names{"Torch.b.0.forward"});
  CHECK(table.chain("Torch.c.0.forward") == Names{"optimizer", "Torch.c.0.forward"});
  CHECK(table.chain("not there") == Names{"not there"});
  CHECK(table.parent("not there").empty());
}

TEST_CASE("construct.json: the calls of a closure are not the optimizer's") {
  const auto table = read(R"({"Module.m.M.forward.0": null, "Tensor.roll.0.forward": "optimizer",
                              "Functional.cross_entropy.0.forward": ["optimizer", 0],
                              "Functional.cross_entropy.0.backward": null, "Tensor.mul_.0.forward": "optimizer",
                              "Tensor.mul_.0.backward": "Module.m.M.backward.0", "Tensor.add_.0.forward": "optimizer"})");
  for (const char* name :
       {"Tensor.roll.0.forward", "Functional.cross_entropy.0.forward", "Tensor.mul_.0.forward"}) {
    CAPTURE(name);
    CHECK(table.parent(name).empty());
  }
  CHECK(table.parent("Tensor.add_.0.forward") == "optimizer");
  CHECK(table.size() == 2);
  const auto plain = read(R"({"Tensor.mul.0.forward": "optimizer", "Tensor.mul.1.backward": null})");
  CHECK(plain.parent("Tensor.mul.0.forward") == "optimizer");
}

TEST_CASE("construct.json: micro steps beyond the first") {
  const auto table = read(R"({"a": ["m", 2], "b": [null, 1], "c": "m", "d": ["m", -1], "e": ["m", 1e99],
                              "f": ["m", "1"], "g": ["m", 99999999999]})");
  CHECK(table.numbers_micro_steps());
  CHECK(table.micro_step("a") == 2);
  CHECK(table.micro_step("b") == 1);
  for (const char* name : {"c", "d", "e", "f", "g", "m", "not there"}) {
    CAPTURE(name);
    CHECK(table.micro_step(name) == 0);
  }
  CHECK_FALSE(read(R"({"a": ["m", 0], "b": "m"})").numbers_micro_steps());
}

TEST_CASE("construct.json: values of other shapes name no parent") {
  const auto table = read(R"({"a": 1, "b": {"x": "y"}, "c": [["z", 0]], "d": [1, "late"], "e": [], "f": true,
                              "g\u0041": "\u00e9"})");
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    CAPTURE(name);
    CHECK(table.parent(name).empty());
  }
  CHECK(table.parent("gA") == "\xC3\xA9");
}

TEST_CASE("construct.json: parents in a circle") {
  const auto table = read(R"({"a": "b", "b": "c", "c": "b", "self": "self"})");
  CHECK(table.chain("a") == Names{"c", "b", "a"});
  CHECK(table.chain("self") == Names{"self"});
}

TEST_CASE("construct.json: a chain of a hundred thousand parents") {
  std::string text = "{";
  constexpr int kLength = 100'000;
  for (int i = 0; i < kLength; ++i)
    text += "\"" + std::to_string(i) + "\":\"" + std::to_string(i + 1) + (i + 1 == kLength ? "\"}" : "\",");
  const Names chain = read(text).chain("0");
  REQUIRE(chain.size() == kLength + 1);
  CHECK(chain.front() == std::to_string(kLength));
  CHECK(chain.back() == "0");
}

TEST_CASE("construct.json: broken files") {
  CHECK_THROWS_WITH_AS(read("[]"), "construct.json: the top level is not an object (byte 0)", FormatError);
  CHECK_THROWS_WITH_AS(read(""), "construct.json: the file is empty (byte 0)", FormatError);
  CHECK_THROWS_AS(read("{\"a\": \"b\""), FormatError);
  CHECK_THROWS_WITH_AS(read("{\"a\": " + std::string(1'000'000, '[')), doctest::Contains("nested too deep"),
                       FormatError);
}

TEST_CASE("the construct.json beside a dump.json need not be there, nor be one") {
  const test::ScratchDirectory scratch;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(scratch / name) << text;
  };
  const dump::ConstructBeside none((scratch / "dump.json"));
  CHECK(none.table().size() == 0);
  CHECK(none.problem().empty());

  write("construct.json", R"({"Torch.exp.0.forward": "Module.net.Net.forward.0"})");
  const dump::ConstructBeside beside((scratch / "dump.json"));
  CHECK(beside.table().parent("Torch.exp.0.forward") == "Module.net.Net.forward.0");
  CHECK(beside.problem().empty());
  write("construct.json", "{");
  CHECK(beside.table().size() == 1);  // read once

  const dump::ConstructBeside broken((scratch / "dump.json"));
  CHECK(broken.table().size() == 0);
  CHECK(broken.problem().find("construct.json: the JSON ends too early") != std::string::npos);
}

}  // namespace msprobe::dump_construct_json_test
