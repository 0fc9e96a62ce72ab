// SPDX-License-Identifier: Apache-2.0
#include "pairing/matching.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pairing/match.hpp"
#include "support/error.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_matching_test {

using namespace compare;  // helpers of tests

using namespace msprobe;
using namespace msprobe::pairing;

namespace {

/// Pairs as "target name = golden name", or "target name - reason".
std::vector<std::string> pairs(std::string_view target_members, std::string_view golden_members,
                               const MatchOptions& options = {}, std::string_view target_framework = {},
                               std::string_view golden_framework = {}) {
  const Side target = side_of(target_members, target_framework);
  const Side golden = side_of(golden_members, golden_framework);
  std::vector<std::string> out;
  for (const Pair& pair : match(target, golden, options, default_rules()).pairs) {
    std::string line(target.name(target.items[pair.target]));
    switch (pair.reason) {
      case Unmatched::no:
        line += " = ";
        line += golden.name(golden.items[pair.golden]);
        break;
      case Unmatched::entry_missing:
        line += " - entry";
        break;
      case Unmatched::item_missing:
        line += " - item";
        break;
      case Unmatched::dtype:
        line += " - dtype ";
        line += golden.text(golden.items[pair.candidate].dtype);
        break;
      case Unmatched::nothing:
        line += " - nothing";
        break;
      case Unmatched::other_code:  // no match(): the diagnosis pairs these
        line += " - other code";
        break;
    }
    CHECK((pair.golden == kUnmatched) == (pair.reason != Unmatched::no));
    out.push_back(line);
  }
  return out;
}

std::uint64_t golden_only(std::string_view target, std::string_view golden) {
  return match_by_name(side_of(target), side_of(golden)).golden_only;
}

std::string entry(std::string_view name, std::string_view dtype = "torch.float32") {
  return forward_json(name, tensor_json("1", dtype), "");
}

std::string backward(std::string_view name) {
  return "\"" + std::string(name) + R"(": {"input": [)" + tensor_json("1") + "]}";
}

/// Options with a mapping file of this text.
MatchOptions mapped(Method method, std::string_view yaml) {
  const test::ScratchDirectory scratch;
  MatchOptions options;
  options.method = method;
  if (!yaml.empty()) {
    options.mapping_file = scratch / "map.yaml";
    test::put_file(options.mapping_file, std::string(yaml));
  }
  load_mapping(options);
  return options;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("rows pair by name, in the order of the target") {
  CHECK(pairs(entry("Torch.b.0.forward") + "," + entry("Torch.a.0.forward"),
              entry("Torch.a.0.forward") + "," + entry("Torch.b.0.forward")) ==
        Lines{"Torch.b.0.forward.input.0 = Torch.b.0.forward.input.0",
              "Torch.a.0.forward.input.0 = Torch.a.0.forward.input.0"});
}

TEST_CASE("a row without partner knows why") {
  CHECK(pairs(forward_json("Torch.a.0.forward", tensor_json("1") + "," + tensor_json("2"), "") + "," +
                  entry("Torch.b.0.forward") + "," + entry("Torch.c.0.forward", "torch.int32"),
              entry("Torch.a.0.forward") + "," + entry("Torch.c.0.forward")) ==
        Lines{"Torch.a.0.forward.input.0 = Torch.a.0.forward.input.0", "Torch.a.0.forward.input.1 - item",
              "Torch.b.0.forward.input.0 - entry", "Torch.c.0.forward.input.0 - dtype torch.float32"});
}

TEST_CASE("items that only the reference has are counted, also those refused for their dtype") {
  CHECK(golden_only(entry("Torch.a.0.forward"), entry("Torch.a.0.forward")) == 0);
  CHECK(golden_only(entry("Torch.a.0.forward"),
                    entry("Torch.b.0.forward") + "," + entry("Torch.a.0.forward")) == 1);
  CHECK(golden_only(entry("Torch.a.0.forward", "torch.int64"), entry("Torch.a.0.forward")) == 1);
}

TEST_CASE("backward calls pair by order of appearance, numbers first") {
  CHECK(pairs(backward("Torch.f.1.backward") + "," + backward("Torch.f.0.backward"),
              backward("Torch.f.2.backward") + "," + backward("Torch.f.3.backward")) ==
        Lines{"Torch.f.1.backward.input.0 = Torch.f.2.backward.input.0",
              "Torch.f.0.backward.input.0 = Torch.f.3.backward.input.0"});
}

TEST_CASE("backward calls pair by order of appearance, numbers last") {
  CHECK(pairs(backward("Module.a.L.backward.7") + "," + backward("Module.b.L.backward.7") + "," +
                  backward("Module.a.L.backward.5"),
              backward("Module.a.L.backward.0") + "," + backward("Module.a.L.backward.1") + "," +
                  backward("Module.b.L.backward.0")) ==
        Lines{"Module.a.L.backward.7.input.0 = Module.a.L.backward.0.input.0",
              "Module.b.L.backward.7.input.0 = Module.b.L.backward.0.input.0",
              "Module.a.L.backward.5.input.0 = Module.a.L.backward.1.input.0"});
}

TEST_CASE("forward calls pair by what they do, where their numbers moved") {
  const std::string target = forward_json("Torch.f.0.forward", tensor_json("1", "torch.float32", "[3]"), "") +
                             "," + entry("Torch.f.1.forward") + "," + entry("Torch.g.0.forward");
  const std::string golden = entry("Torch.f.0.forward") + "," + entry("Torch.g.0.forward");
  CHECK(pairs(target, golden) == Lines{"Torch.f.0.forward.input.0 - entry",
                                       "Torch.f.1.forward.input.0 = Torch.f.0.forward.input.0",
                                       "Torch.g.0.forward.input.0 = Torch.g.0.forward.input.0"});
  CHECK(pairs(target, golden, {.by_name = true}) ==
        Lines{"Torch.f.0.forward.input.0 = Torch.f.0.forward.input.0", "Torch.f.1.forward.input.0 - entry",
              "Torch.g.0.forward.input.0 = Torch.g.0.forward.input.0"});
}

TEST_CASE("of equal calls those of one name pair: a recomputed forward is the one without partner") {
  CHECK(pairs(entry("Torch.f.0.forward"), entry("Torch.f.0.forward") + "," + entry("Torch.f.1.forward")) ==
        Lines{"Torch.f.0.forward.input.0 = Torch.f.0.forward.input.0"});
  CHECK(pairs(entry("Torch.f.1.forward"), entry("Torch.f.0.forward") + "," + entry("Torch.f.1.forward")) ==
        Lines{"Torch.f.1.forward.input.0 = Torch.f.1.forward.input.0"});
}

TEST_CASE("a renumbered call that lacks an item lacks the item, not the entry") {
  CHECK(pairs(backward("Torch.f.4.backward"), R"("Torch.f.0.backward": {"output": [null]})") ==
        Lines{"Torch.f.4.backward.input.0 - item"});
}

TEST_CASE("which dtypes may stay paired") {
  const Rules rules = default_rules();
  for (const char* a : {"torch.float16", "torch.float32", "torch.bfloat16"}) {
    for (const char* b : {"torch.float16", "torch.float32", "torch.bfloat16"}) {
      CHECK(dtypes_match(a, b, rules));
    }
    CHECK(dtypes_match(a, "torch.float64", rules));
    CHECK(dtypes_match("torch.float64", a, rules));
    CHECK_FALSE(dtypes_match(a, "Float32", rules));
  }
  CHECK(dtypes_match("Float16", "BFloat16", rules));
  CHECK(dtypes_match("Float64", "BFloat16", rules));
  CHECK(dtypes_match("whatever", "whatever", rules));
  CHECK_FALSE(dtypes_match("torch.int32", "torch.int64", rules));
  CHECK_FALSE(dtypes_match("<class 'int'>", "<class 'float'>", rules));
}

TEST_CASE("repeated names pair each with each") {
  const std::string two =
      R"("Module.f.L.parameters_grad": {"weight": [)" + tensor_json("1") + "," + tensor_json("2") + "]}";
  const std::string name = "Module.f.L.parameters_grad.weight";
  CHECK(pairs(two, two) == Lines(4, name + " = " + name));
}

TEST_CASE("repeated names cannot multiply without bound") {
  const auto nulls = [](int count) {
    std::string list = "null";
    for (int i = 1; i < count; ++i) list += ",null";
    return R"("Module.f.L.parameters_grad": {"weight": [)" + list + "]}";
  };
  CHECK(pairs(nulls(200), nulls(200)).size() == 40'000);
  CHECK_THROWS_WITH_AS(match_by_name(side_of(nulls(3000)), side_of(nulls(3000))),
                       "dump.json: too many rows share one name: Module.f.L.parameters_grad.weight",
                       FormatError);
}

TEST_CASE("a data mapping names rows, whatever their dtype; the others go by their own name") {
  CHECK(pairs(entry("Torch.a.0.forward", "torch.int64") + "," + entry("Torch.b.0.forward") + "," +
                  entry("Torch.c.0.forward"),
              entry("Torch.z.0.forward") + "," + entry("Torch.b.0.forward"),
              mapped(Method::data,
                     "Torch.a.0.forward.input.0: Torch.z.0.forward.input.0\n"
                     "Torch.c.0.forward.input.0: N/A\n")) ==
        Lines{"Torch.a.0.forward.input.0 = Torch.z.0.forward.input.0",
              "Torch.b.0.forward.input.0 = Torch.b.0.forward.input.0", "Torch.c.0.forward.input.0 - entry"});
}

TEST_CASE("a data mapping means backward calls by their names as they stand") {
  const std::string target = backward("Torch.a.1.backward") + "," + backward("Torch.a.0.backward");
  const std::string golden = backward("Torch.z.1.backward") + "," + backward("Torch.z.0.backward");
  const char* yaml =
      "Torch.a.1.backward.input.0: Torch.z.1.backward.input.0\n"
      "Torch.a.0.backward.input.0: Torch.z.0.backward.input.0\n";
  CHECK(pairs(target, golden, mapped(Method::data, yaml)) ==
        Lines{"Torch.a.1.backward.input.0 = Torch.z.1.backward.input.0",
              "Torch.a.0.backward.input.0 = Torch.z.0.backward.input.0"});
}

TEST_CASE("fuzzy: call numbers do not matter, in both forms of names") {
  MatchOptions fuzzy;
  fuzzy.fuzzy = true;
  CHECK(
      pairs(entry("Torch.a.0.forward") + "," + entry("Torch.b.0.forward") + "," + entry("Torch.a.1.forward"),
            entry("Torch.a.3.forward") + "," + entry("Torch.a.4.forward"), fuzzy) ==
      Lines{"Torch.a.0.forward.input.0 = Torch.a.3.forward.input.0", "Torch.b.0.forward.input.0 - entry",
            "Torch.a.1.forward.input.0 = Torch.a.4.forward.input.0"});
  CHECK(pairs(entry("Module.a.L.forward.0") + "," + entry("Module.b.M.forward.0"),
              entry("Module.a.L.forward.5") + "," + entry("Module.b.N.forward.5"),
              fuzzy) == Lines{"Module.a.L.forward.0.input.0 = Module.a.L.forward.5.input.0",
                              "Module.b.M.forward.0.input.0 - entry"});
  // Dtypes are looked at as everywhere.
  CHECK(pairs(entry("Torch.a.0.forward", "torch.int64"), entry("Torch.a.3.forward"), fuzzy) ==
        Lines{"Torch.a.0.forward.input.0 - dtype torch.float32"});
}

TEST_CASE("an api mapping names MindSpore's operations, whichever side they are on") {
  const std::string mindspore =
      entry("Mint.add.0.forward", "Float32") + "," + entry("Functional.dense.0.forward", "Int32") + "," +
      backward("Functional.dense.1.backward") + "," + entry("Functional.none.0.forward");
  const std::string pytorch = entry("Torch.add.0.forward") + "," +
                              entry("Functional.linear.0.forward", "torch.int64") + "," +
                              backward("Functional.linear.0.backward");
  const MatchOptions options = mapped(Method::api, "");
  CHECK(pairs(mindspore, pytorch, options, "mindspore", "pytorch") ==
        Lines{"Mint.add.0.forward.input.0 = Torch.add.0.forward.input.0",
              "Functional.dense.0.forward.input.0 = Functional.linear.0.forward.input.0",
              "Functional.dense.1.backward.input.0 = Functional.linear.0.backward.input.0",
              "Functional.none.0.forward.input.0 - entry"});
  CHECK(pairs(pytorch, mindspore, options, "pytorch", "mindspore") ==
        Lines{"Torch.add.0.forward.input.0 = Mint.add.0.forward.input.0",
              "Functional.linear.0.forward.input.0 = Functional.dense.0.forward.input.0",
              "Functional.linear.0.backward.input.0 = Functional.dense.1.backward.input.0"});
  CHECK(pairs(mindspore, mindspore, options, "mindspore", "mindspore")[1] ==
        "Functional.dense.0.forward.input.0 = Functional.dense.0.forward.input.0");
  // MSAdapter's names are those of PyTorch already.
  CHECK(pairs(entry("Tensor.equal.0.forward"), entry("Tensor.equal.0.forward"), options, "mindtorch",
              "pytorch") == Lines{"Tensor.equal.0.forward.input.0 = Tensor.equal.0.forward.input.0"});
}

TEST_CASE("gradients of a call go by their role where frameworks give them in another order") {
  const auto gradients = [](std::string_view dtype, const std::vector<std::string>& shapes) {
    std::string text =
        R"("Functional.linear.0.backward": {"input": [)" + tensor_json("1", dtype) + R"(], "output": [)";
    for (const std::string& shape : shapes) {
      if (text.back() != '[') text += ',';
      text += shape == "null" ? shape : tensor_json("1", dtype, shape);
    }
    return text + "]}";
  };
  const std::string output = "Functional.linear.0.backward.output.";
  const std::string input = "Functional.linear.0.backward.input.0";
  const std::string by_argument = gradients("Float32", {"[5, 4]", "[3, 4]", "[3]"});
  const std::string by_graph = gradients("torch.float32", {"[3]", "[5, 4]", "[4, 3]"});
  CHECK(pairs(by_argument, by_graph, {}, "mindtorch", "pytorch") ==
        Lines{input + " = " + input, output + "0 = " + output + "1", output + "1 - item",
              output + "2 = " + output + "0"});
  CHECK(pairs(by_graph, by_argument, {}, "pytorch", "mindspore") ==
        Lines{input + " = " + input, output + "0 = " + output + "2", output + "1 = " + output + "0",
              output + "2 - item"});
  // Gradients of one shape pair in their order. An unneeded one is null in PyTorch, and has no partner.
  CHECK(pairs(gradients("Float32", {"[4]", "[2]", "[2]"}), gradients("torch.float32", {"[2]", "null", "[2]"}),
              {}, "mindtorch",
              "pytorch") == Lines{input + " = " + input, output + "0 - item", output + "1 = " + output + "0",
                                  output + "2 = " + output + "2"});
  // Gradients of one framework, and of two with one order, pair by their places.
  const Lines places = {input + " = " + input, output + "0 = " + output + "0", output + "1 = " + output + "1",
                        output + "2 = " + output + "2"};
  CHECK(pairs(by_argument, by_argument, {}, "mindtorch", "mindspore") == places);
  CHECK(pairs(by_graph, gradients("torch.float32", {"[5, 4]", "[3, 4]", "[3]"}), {}, "pytorch", "pytorch") ==
        places);
}

TEST_CASE("parameters pair across frameworks that call them and their modules otherwise") {
  // Names of parameters are comma-free texts; each has one element.
  const auto module = [](const std::string& base, std::string_view dtype,
                         const std::vector<std::string>& names) {
    std::string parameters;
    std::string gradients;
    for (const std::string& name : names) {
      if (!parameters.empty()) parameters += ',';
      if (!gradients.empty()) gradients += ',';
      parameters += '"' + name + "\": " + tensor_json("1", dtype);
      gradients += '"' + name + "\": [" + tensor_json("1", dtype) + "]";
    }
    return '"' + base + R"(.forward.0": {"input_args": [], "parameters": {)" + parameters +
           R"(}, "output": []}, ")" + base + R"(.parameters_grad.0": {)" + gradients + "}";
  };
  const std::string ours = "Cell.norm.LayerNorm.";
  const std::string theirs = "Module.norm.LayerNorm.";
  const std::string cell = module("Cell.norm.LayerNorm", "Float32", {"gamma", "beta", "moving_mean"});
  const std::string torch = module("Module.norm.LayerNorm", "torch.float32", {"bias", "weight"});
  const Lines expected = {
      ours + "forward.0.parameters.gamma = " + theirs + "forward.0.parameters.weight",
      ours + "forward.0.parameters.beta = " + theirs + "forward.0.parameters.bias",
      ours + "forward.0.parameters.moving_mean - item",
      ours + "parameters_grad.0.gamma = " + theirs + "parameters_grad.0.weight",
      ours + "parameters_grad.0.beta = " + theirs + "parameters_grad.0.bias",
      ours + "parameters_grad.0.moving_mean - item",
  };
  for (const char* framework : {"pytorch", "mindtorch"})
    CHECK(pairs(cell, torch, {}, "mindspore", framework) == expected);
  CHECK(pairs(torch, cell, {}, "pytorch", "mindspore")[1] ==
        theirs + "forward.0.parameters.weight = " + ours + "forward.0.parameters.gamma");
  // Its own class is that of the module at one place.
  CHECK(pairs(module("Cell.fc.Dense", "Float32", {"weight"}),
              module("Module.fc.Linear", "torch.float32", {"weight"}), {}, "mindspore", "pytorch")[1] ==
        "Cell.fc.Dense.parameters_grad.0.weight = "
        "Module.fc.Linear.parameters_grad.0.weight");
  // A name that both have is that one's; of one framework names are names.
  CHECK(pairs(module("Cell.a.A", "Float32", {"gamma", "weight"}),
              module("Module.a.A", "torch.float32", {"weight"}), {}, "mindspore",
              "pytorch")[0] == "Cell.a.A.forward.0.parameters.gamma - item");
  CHECK(pairs(module("Module.a.A", "torch.float32", {"gamma"}),
              module("Module.a.A", "torch.float32", {"weight"}), {}, "pytorch",
              "pytorch")[0] == "Module.a.A.forward.0.parameters.gamma - item");
}

TEST_CASE("types as MSAdapter lets MindSpore write them are MindSpore's") {
  const std::string name = "Torch.a.0.forward.input.0";
  for (const char* dtype : {"Float32", "torch.float32", "torch.bfloat16", "mindspore.float16"}) {
    CHECK(pairs(entry("Torch.a.0.forward", "mindspore.float32"), entry("Torch.a.0.forward", dtype)) ==
          Lines{name + " = " + name});
  }
  CHECK(pairs(entry("Torch.a.0.forward", "Int64"), entry("Torch.a.0.forward", "mindspore.int64")) ==
        Lines{name + " = " + name});
  CHECK(pairs(entry("Torch.a.0.forward", "mindspore.int64"), entry("Torch.a.0.forward", "Float32")) ==
        Lines{name + " - dtype Float32"});
}

TEST_CASE("rules of an api mapping say which arguments correspond, in either direction") {
  const auto call = [](std::string_view name) {
    return forward_json(name, tensor_json("1") + "," + tensor_json("2") + "," + tensor_json("3"),
                        tensor_json("4") + "," + tensor_json("5"));
  };
  const MatchOptions options =
      mapped(Method::api, "ms_api: Functional.fas\npt_api: NPU.fusion\nms_args: [0, 1]\npt_args: [0, 2]\n");
  CHECK(pairs(call("Functional.fas.0.forward"), call("NPU.fusion.0.forward"), options, "mindspore",
              "pytorch") == Lines{"Functional.fas.0.forward.input.0 = NPU.fusion.0.forward.input.0",
                                  "Functional.fas.0.forward.input.1 = NPU.fusion.0.forward.input.2",
                                  "Functional.fas.0.forward.input.2 - item",
                                  "Functional.fas.0.forward.output.0 = NPU.fusion.0.forward.output.0",
                                  "Functional.fas.0.forward.output.1 = NPU.fusion.0.forward.output.1"});
  CHECK(pairs(call("NPU.fusion.0.forward"), call("Functional.fas.0.forward"), options, "pytorch",
              "mindspore") == Lines{"NPU.fusion.0.forward.input.0 = Functional.fas.0.forward.input.0",
                                    "NPU.fusion.0.forward.input.1 - item",
                                    "NPU.fusion.0.forward.input.2 = Functional.fas.0.forward.input.1",
                                    "NPU.fusion.0.forward.output.0 = Functional.fas.0.forward.output.0",
                                    "NPU.fusion.0.forward.output.1 = Functional.fas.0.forward.output.1"});
  // A named section that is empty pairs nothing.
  CHECK(
      pairs(call("Functional.fas.0.forward"), call("NPU.fusion.0.forward"),
            mapped(Method::api, "ms_api: Functional.fas\npt_api: NPU.fusion\nms_output: []\npt_output: []\n"),
            "mindspore", "pytorch")[3] == "Functional.fas.0.forward.output.0 - item");
}

TEST_CASE("api mapping and fuzzy match go together") {
  MatchOptions options = mapped(Method::api, "");
  options.fuzzy = true;
  CHECK(pairs(entry("Mint.add.7.forward") + "," + entry("Functional.dense.2.forward"),
              entry("Torch.add.0.forward") + "," + entry("Functional.linear.0.forward"), options, "mindspore",
              "pytorch") ==
        Lines{"Mint.add.7.forward.input.0 = Torch.add.0.forward.input.0",
              "Functional.dense.2.forward.input.0 = Functional.linear.0.forward.input.0"});
}

TEST_CASE("a cell mapping renumbers backward calls after it has named them, on both sides") {
  const MatchOptions options = mapped(Method::cell, "Dense: Linear\n");
  CHECK(pairs(backward("Cell.a.Dense.backward.3") + "," + backward("Cell.a.Dense.backward.1"),
              backward("Module.a.Linear.backward.1") + "," + backward("Module.a.Linear.backward.0"),
              options) == Lines{"Cell.a.Dense.backward.3.input.0 = Module.a.Linear.backward.1.input.0",
                                "Cell.a.Dense.backward.1.input.0 = Module.a.Linear.backward.0.input.0"});
  // Cell and Module are one on both sides.
  CHECK(pairs(entry("Module.a.L.forward.0"), entry("Cell.a.L.forward.0"), mapped(Method::cell, "")) ==
        Lines{"Module.a.L.forward.0.input.0 = Cell.a.L.forward.0.input.0"});
}

TEST_CASE("dtypes of two frameworks pair within their class") {
  const Rules rules = default_rules();
  const auto match_across = [&](const char* a, const char* b) {
    return dtypes_match(a, b, rules, DtypeCheck::canonical) &&
           dtypes_match(b, a, rules, DtypeCheck::canonical);
  };
  CHECK(match_across("Float32", "torch.float64"));
  CHECK(match_across("Int8", "torch.int64"));
  CHECK(match_across("Bool", "torch.bool"));
  CHECK_FALSE(match_across("Bool", "torch.uint8"));
  CHECK_FALSE(match_across("Int32", "torch.float32"));
  // Within one framework as always.
  CHECK_FALSE(match_across("torch.int32", "torch.int64"));
  CHECK_FALSE(match_across("Int32", "Int64"));
  CHECK(dtypes_match("Bool", "torch.int64", rules, DtypeCheck::none));
}

TEST_CASE("gradients of parameters pair whether a release numbers them or not") {
  const std::string number =
      R"("Module.fc.Linear.parameters_grad.0": {"weight": [)" + tensor_json("1") + "]}";
  const std::string none = R"("Module.fc.Linear.parameters_grad": {"weight": [)" + tensor_json("1") + "]}";
  using Lines = std::vector<std::string>;
  CHECK(pairs(none, number) ==
        Lines{"Module.fc.Linear.parameters_grad.weight = Module.fc.Linear.parameters_grad.0.weight"});
  CHECK(pairs(number, none) ==
        Lines{"Module.fc.Linear.parameters_grad.0.weight = Module.fc.Linear.parameters_grad.weight"});
  CHECK(pairs(none, none) ==
        Lines{"Module.fc.Linear.parameters_grad.weight = Module.fc.Linear.parameters_grad.weight"});
}

}  // namespace msprobe::compare_matching_test
