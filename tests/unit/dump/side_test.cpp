// SPDX-License-Identifier: Apache-2.0
#include "dump/side.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/error.hpp"
#include "unit/compare/dumps.hpp"

namespace msprobe::dump_side_test {

using namespace msprobe;
using namespace msprobe::dump;
using compare::forward_json;
using compare::scalar_json;
using compare::side_of;
using compare::tensor_json;

namespace {

/// Everything a row shows of an item.
std::string describe(const Side& side, const Item& item) {
  std::string out(side.name(item));
  for (const std::uint32_t id : {item.dtype, item.shape, item.checksum, item.data_name}) {
    out += " | ";
    out += side.text(id);
  }
  out += " |";
  for (std::size_t i = 0; i < kStatistics; ++i) out += " " + to_text(item.statistics[i], side.pool);
  if (item.requires_grad != RequiresGrad::unknown)
    out += item.requires_grad == RequiresGrad::yes ? " | grad" : " | no grad";
  return out;
}

/// The items of one entry `Torch.a.0.forward` with these members.
std::vector<std::string> rows(std::string_view members, std::string_view name = "Torch.a.0.forward") {
  const Side side = side_of("\"" + std::string(name) + "\": " + std::string(members));
  std::vector<std::string> out;
  for (const Item& item : side.items) out.push_back(describe(side, item));
  return out;
}

/// The item of one input.
std::string input(std::string_view element) {
  const auto all = rows(R"({"input_args": [)" + std::string(element) + "]}");
  return all.size() == 1 ? all[0] : std::to_string(all.size()) + " rows";
}

std::vector<std::string> names(std::string_view members, std::string_view name = "Torch.a.0.forward") {
  std::vector<std::string> out;
  for (const std::string& row : rows(members, name)) out.push_back(row.substr(0, row.find(" | ")));
  return out;
}

using Names = std::vector<std::string>;

bool has_md5(std::string_view members) {
  return side_of(members).has_md5;
}

}  // namespace

TEST_CASE("a tensor becomes a row with its statistics") {
  CHECK(input(tensor_json("1.5")) ==
        "Torch.a.0.forward.input.0 | torch.float32 | [2, 3] | 00000000 |  | 1.5 1.5 1.5 1.5");
  CHECK(input(tensor_json("null", "torch.int64", "[]", R"(, "requires_grad": true, "md5": "0a0b0c0d")")) ==
        "Torch.a.0.forward.input.0 | torch.int64 | [] | 0a0b0c0d |  | None None None None | grad");
  CHECK(input(tensor_json("NaN", "Float32", "[0]", R"(, "requires_grad": false, "data_name": "x.y.0.pt")")) ==
        "x.y.0 | Float32 | [0] | 00000000 | x.y.0.pt | Nan Nan Nan Nan | no grad");
  CHECK(input(R"({"type": "numpy.ndarray", "dtype": "<U2", "shape": [2], "Max": true})") ==
        "Torch.a.0.forward.input.0 | <U2 | [2] | 00000000 |  | True None None None");
}

TEST_CASE("checksums: what the dump says, else the CRC-32 of the value's text") {
  CHECK(side_of(forward_json("Torch.a.0.forward", tensor_json("1"), "")).items[0].has_checksum == false);
  CHECK(side_of(forward_json("Torch.a.0.forward", scalar_json("int", "1"), "")).items[0].has_checksum);
  // A 0-d tensor under xor stores a number.
  CHECK(input(tensor_json("1", "torch.float32", "[]", R"(, "md5": 1.5)")).find("| 1.5 |") !=
        std::string::npos);
  CHECK(input(tensor_json("1", "torch.float32", "[]", R"(, "md5": null)")).find("| 00000000 |") !=
        std::string::npos);
}

TEST_CASE("arguments that are no tensors: every kind") {
  const std::string at = "Torch.a.0.forward.input.0 | ";
  CHECK(input(scalar_json("int", "1")) == at + "<class 'int'> | [] | 83dcefb7 |  | 1 1 1 1");
  CHECK(input(scalar_json("float", "2.5")) == at + "<class 'float'> | [] | 851a25e3 |  | 2.5 2.5 2.5 2.5");
  CHECK(input(scalar_json("float", "NaN")) == at + "<class 'float'> | [] | 6be42981 |  | Nan Nan Nan Nan");
  CHECK(input(scalar_json("float", "Infinity")) ==
        at + "<class 'float'> | [] | e7e8abf9 |  | inf inf inf inf");
  CHECK(input(scalar_json("bool", "true")) == at + "<class 'bool'> | [] | 5dcee3b3 |  | True True True True");
  CHECK(input(scalar_json("str", "\"s\"")) == at + "<class 'str'> | [] | 1b0ecf0b |  | s s s s");
  CHECK(input(R"({"type": "torch.memory_format", "format": "contiguous_format"})") ==
        at + "<class 'NoneType'> | [] | 00000000 |  | None None None None");
  CHECK(input(scalar_json("E", "1")) == at + "<class 'int'> | [] | 83dcefb7 |  | 1 1 1 1");
  CHECK(input(scalar_json("slice", "[1, 5, 2]")) == at + "slice | (3,) | 131ad690 |  | None None None None");
  CHECK(input(scalar_json("torch.Size", "[2, 3]")).starts_with(at + "torch.Size | [2, 3] | "));
  CHECK(input(scalar_json("torch.Size", "[2, 3]")).ends_with(" | None None None None"));
  CHECK(input(scalar_json("ellipsis", "\"...\"")).starts_with(at + "ellipsis | [] | "));
  CHECK(input(scalar_json("ellipsis", "\"...\"")).ends_with(" | ... ... ... ..."));
  CHECK(input(R"({"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "77849d8c"})") ==
        at + "torch.ProcessGroup | [] | [0, 1] |  | [0, 1] [0, 1] [0, 1] [0, 1]");
  CHECK(input("null") == at + "None | None |  |  | None None None None");
}

TEST_CASE("integers beyond 64 bits stay what they are") {
  CHECK(input(scalar_json("int", "100000000000000000000"))
            .ends_with("100000000000000000000 100000000000000000000 100000000000000000000 "
                       "100000000000000000000"));
}

TEST_CASE("ranks that data comes from or goes to are texts") {
  for (const char* name : {"src", "dst", "group_src", "group_dst"}) {
    CHECK(rows(std::string(R"({"input_kwargs": {")") + name + R"(": {"type": "int", "value": 3}}})") ==
          Names{std::string("Torch.a.0.forward.input.") + name + " | int | [] | 3 |  | 3 3 3 3"});
  }
  CHECK(rows(R"({"input_kwargs": {"my_src": {"type": "int", "value": 3}}})")[0].find("<class 'int'>") !=
        std::string::npos);
}

TEST_CASE("a P2POp is the row of its tensor") {
  CHECK(input(R"({"class_type": "torch.distributed.P2POp", "op": "isend", "peer": 1, "tensor": )" +
              tensor_json("2") + "}") ==
        "Torch.a.0.forward.input.0 | torch.float32 | [2, 3] | 00000000 |  | 2 2 2 2");
  CHECK(input(R"({"class_type": "torch.distributed.P2POp", "tensor": null})") ==
        "Torch.a.0.forward.input.0 | None | None |  |  | None None None None");
}

TEST_CASE("sections come in their order, whatever that of the file") {
  CHECK(names(R"({"output": [null], "parameters": {"weight": null}, "input_kwargs": {"k": null},
                  "input_args": [null], "is_recompute": false})") ==
        Names{"Torch.a.0.forward.input.0", "Torch.a.0.forward.input.k", "Torch.a.0.forward.parameters.weight",
              "Torch.a.0.forward.output.0"});
  CHECK(names(R"({"output": [null], "input": [null, null]})", "Torch.a.0.backward") ==
        Names{"Torch.a.0.backward.input.0", "Torch.a.0.backward.input.1", "Torch.a.0.backward.output.0"});
}

TEST_CASE("nested values take the way to them into their name; what is empty gives no row") {
  CHECK(names(R"({"input_args": [[null, [null]], {"a b": {"c": null}}, [], {}, 0, "", false, 7, "text"],
                  "output": null})") == Names{"Torch.a.0.forward.input.0.0", "Torch.a.0.forward.input.0.1.0",
                                              "Torch.a.0.forward.input.1.a b.c", "Torch.a.0.forward.output"});
}

TEST_CASE("parameter gradients in both layouts; the list level has no name") {
  const std::string members = R"({"weight": [)" + tensor_json("1") + "], \"bias\": [null, null]}";
  CHECK(names(members, "Module.fc.Linear.parameters_grad") == Names{"Module.fc.Linear.parameters_grad.weight",
                                                                    "Module.fc.Linear.parameters_grad.bias",
                                                                    "Module.fc.Linear.parameters_grad.bias"});
  CHECK(names(members, "Module.fc.Linear.parameters_grad.3") ==
        Names{"Module.fc.Linear.parameters_grad.3.weight", "Module.fc.Linear.parameters_grad.3.bias",
              "Module.fc.Linear.parameters_grad.3.bias"});
}

TEST_CASE("entries without a direction are left aside and counted") {
  const Side side = side_of(R"("forward.a.b.c": {"input": [null]}, "y.0.debugged": {"input": [null]},
                               "Torch.a.0.forward": {"input": [null]}, "Module.b.forward.0": 7)");
  CHECK(side.skipped == 2);
  REQUIRE(side.apis.size() == 2);
  CHECK(side.text(side.apis[0].name) == "Torch.a.0.forward");
  CHECK(side.apis[1].count == 0);
  CHECK(side.items.size() == 1);
}

TEST_CASE("values saved by name are separate rows, at any depth") {
  CHECK(names("[" + tensor_json("1") + R"(, {"k": {"type": "int", "value": 5}, "none": null}, [[]]])",
              "x.0.debug") == Names{"x.0.debug.0", "x.0.debug.1.k", "x.0.debug.1.none"});
  CHECK(names(tensor_json("1"), "x_grad.3.debug") == Names{"x_grad.3.debug"});
  // Their members are not lists of inputs, whatever the names.
  const Side side = side_of(R"("x.0.debug": {"output": [null], "input": {"type": "int", "value": 1}})");
  REQUIRE(side.items.size() == 2);
  CHECK(side.name(side.items[0]) == "x.0.debug.output.0");
  CHECK(side.items[0].state == State::debug);
  CHECK(side.items[1].state == State::debug);
}

TEST_CASE("a checksum at any depth of a saved value asks for md5 comparison") {
  CHECK(
      has_md5(R"("x.0.debug": [[{"a": {"type": "torch.Tensor", "dtype": "t", "shape": [], "md5": "0"}}]])"));
  CHECK_FALSE(has_md5(R"("x.0.debug": [[{"a": {"type": "torch.Tensor", "dtype": "t", "shape": []}}]])"));
  CHECK_FALSE(has_md5(R"("Torch.a.0.forward": {"input_args": [[{"type": "t", "md5": "0"}]]})"));
}

TEST_CASE("a repeated key has the place of the first and the value of the last") {
  const Side side = side_of(R"("Torch.a.0.forward": {"output": [null, null]},
                               "Torch.b.0.forward": {"output": [null]},
                               "Torch.a.0.forward": {"output": [7, {"type": "int", "value": 5}]})");
  REQUIRE(side.apis.size() == 2);
  REQUIRE(side.items.size() == 2);
  CHECK(side.name(side.items[0]) == "Torch.a.0.forward.output.1");
  CHECK(side.name(side.items[1]) == "Torch.b.0.forward.output.0");
  CHECK(side.items[0].api == 0);
  CHECK(side.items[1].api == 1);
  CHECK(side.apis[1].first == 1);
}

TEST_CASE("md5 is looked for where the Python tool looks") {
  const std::string hashed = tensor_json("1", "torch.float32", "[]", R"(, "md5": "00ff00ff")");
  CHECK(has_md5(R"("Torch.a.0.forward": {"input_args": [)" + hashed + "]}"));
  CHECK(has_md5(R"("Torch.a.0.forward": {"output": [null, )" + hashed + "]}"));
  CHECK(has_md5(R"("Torch.a.0.forward": {"input_kwargs": {"md5": null}})"));
  CHECK(has_md5(R"("Module.f.L.parameters_grad": {"weight": [)" + hashed + "]}"));
  // Deeper ones do not count, nor do plain members.
  CHECK_FALSE(has_md5(R"("Torch.a.0.forward": {"input_args": [[)" + hashed + "]]}"));
  CHECK_FALSE(has_md5(R"("Torch.a.0.forward": {"input_kwargs": {"x": )" + hashed + "}}"));
  CHECK_FALSE(has_md5(R"("Module.f.L.forward.0": {"parameters": {"weight": )" + hashed + "}}"));
  CHECK_FALSE(has_md5(R"("Torch.a.0.forward": {"md5": "x"})"));
  CHECK_FALSE(has_md5(forward_json("Torch.a.0.forward", tensor_json("1"), tensor_json("1"))));
}

TEST_CASE("names that multiply the file are refused, long ones are not") {
  std::string list = "null";
  for (int i = 0; i < 20'000; ++i) list += ",null";
  const auto dump = [&](std::size_t length) {
    return R"("Torch.a.0.forward": {"input_kwargs": {")" + std::string(length, 'k') + "\": [" + list + "]}}";
  };
  CHECK(side_of(dump(200)).items.size() == 20'001);
  CHECK_THROWS_AS(side_of(dump(100'000)), FormatError);
}

}  // namespace msprobe::dump_side_test
