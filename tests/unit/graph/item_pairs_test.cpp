// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/item_pairs.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/pair/result_members.hpp"
#include "support/byte_source.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph_item_pairs_test {

using namespace msprobe::graph;
using namespace msprobe;
using pairing::Unmatched;
using verdict::RankResult;

namespace {

dump::Side side_of(const std::string& entry) {
  const std::string text = R"({"task": "statistics", "data": {"Torch.a.0.forward": )" + entry + "}}";
  return dump::load_side(*memory_source(text, "dump.json"));
}

std::string tensor_of(std::string_view value) {
  std::string text =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "requires_grad": true)";
  for (const char* key : {"Max", "Min", "Mean", "Norm"})
    text += ", \"" + std::string(key) + "\": " + std::string(value);
  return text + "}";
}

RankResult paired(const std::string& target, const std::string& golden) {
  RankResult result;
  result.target = side_of(target);
  result.golden = side_of(golden);
  pair_items(result, {0});
  return result;
}

/// `input.1=input.0`: items of both sides by their names after the entry's.
std::vector<std::string> told(const RankResult& result) {
  const std::size_t front = std::string_view("Torch.a.0.forward.").size();
  std::vector<std::string> out;
  for (const pairing::Pair& row : result.rows) {
    std::string& text = out.emplace_back(result.name_of(row).substr(front));
    text += "=";
    if (row.matched()) text += result.golden.name(result.golden_item(row)).substr(front);
    CHECK((row.reason == Unmatched::no) == row.matched());
    if (!row.matched()) CHECK(row.reason == Unmatched::item_missing);
  }
  return out;
}

using Texts = std::vector<std::string>;
const char kOne[] = R"({"type": "int", "value": 1})";

}  // namespace

TEST_CASE("items pair by name, the rest in order but for keywords") {
  const std::string one = kOne;
  const std::string target = R"({"input_args": [)" + one + "," + one + R"(], "input_kwargs": {"dim": )" +
                             one + R"(, "p": )" + one + R"(}, "parameters": {"weight": )" + one +
                             R"(}, "output": [)" + one + "," + one + "]}";
  const std::string golden = R"({"input_args": [)" + one + R"(], "input_kwargs": {"alpha": )" + one +
                             R"(, "dim": )" + one + R"(}, "parameters": {"gamma": )" + one +
                             R"(}, "output": [[)" + one + "]," + one + "]}";
  CHECK(told(paired(target, golden)) == Texts{"input.0=input.0", "input.1=", "input.dim=input.dim",
                                              "input.p=", "parameters.weight=parameters.gamma",
                                              "output.0=output.0.0", "output.1=output.1"});
}

TEST_CASE("rows of nodes without partner differ from those of partners without data") {
  RankResult result;
  result.target = side_of(R"({"input_args": [)" + std::string(kOne) + "]}");
  for (const auto& [golden, reason] : {std::pair(pairing::kUnmatched, Unmatched::entry_missing),
                                       std::pair(kNoData, Unmatched::item_missing)}) {
    pair_items(result, {golden});
    REQUIRE(result.rows.size() == 1);
    CHECK(result.rows[0].reason == reason);
  }
}

TEST_CASE("what is added to an item") {
  const auto members = [](std::string_view npu, std::string_view bench, bool python) {
    RankResult result = paired(R"({"input_args": [], "output": [)" + tensor_of(npu) + "]}",
                               R"({"input_args": [], "output": [)" + tensor_of(bench) + "]}");
    result.python.numbers_only = python;
    result.python.unknown_pass = python;
    result.judgement = verdict::judge(result, pairing::default_rules());
    JsonWriter json;
    json.value(result_members(result, 0, python));
    const std::string text = json.take();
    return text.substr(0, text.find(R"(, "Min diff")")) + text.substr(text.find(R"(, "NormRelativeErr")"));
  };
  const std::string pass = R"(, "Requires_grad Consistent": "True", "Result": "pass", "Err_message": "[]"})";
  CHECK(members("2.0", "2.0", false) == R"({"Max diff": "0", "NormRelativeErr": "0")" + pass);
  CHECK(members("2.0", "2.0", true) == R"({"Max diff": "0.0", "NormRelativeErr": "0.0%")" + pass);
  CHECK(members("2", "2", true) == R"({"Max diff": "0", "NormRelativeErr": "0.0%")" + pass);
  CHECK(members("3.1", "3", true) ==
        R"({"Max diff": "0.10000000000000009", "NormRelativeErr": "3.333333%")" + pass);
  CHECK(members("5.0", "0.0", true) == R"({"Max diff": "5.0", "NormRelativeErr": "N/A")" + pass);
  CHECK(members("null", "1.0", true) == R"({"Max diff": "N/A", "NormRelativeErr": "N/A")" + pass);
  CHECK(members("true", "true", true) == R"({"Max diff": "N/A", "NormRelativeErr": "N/A")" + pass);
  CHECK(members("1.0", "-Infinity", true) == R"({"Max diff": "inf\t", "NormRelativeErr": "nan%")" + pass);
  CHECK(members("1.0", "NaN", true) == R"({"Max diff": "Nan", "NormRelativeErr": "Nan")" + pass);
  CHECK(members("1000000000000000000000000000000", "1000000000000000000000000000000", true) ==
        R"({"Max diff": "0", "NormRelativeErr": "0.0%")" + pass);
  const std::string error = members("5.0", "0.0", false);
  CHECK(error.starts_with(R"({"Max diff": "5.0", "NormRelativeErr": "inf")"));
  CHECK(error.find(R"("Result": "error")") != std::string::npos);
  CHECK(error.find(R"("Err_message": "[\"error: The NormRelativeErr of output is greater than 0.5.\")") !=
        std::string::npos);
}

}  // namespace msprobe::graph_item_pairs_test
