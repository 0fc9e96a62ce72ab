// SPDX-License-Identifier: Apache-2.0
#include "anomaly/badness.hpp"

#include <doctest/doctest.h>

#include <string>

#include "dump/member_stream.hpp"
#include "dumps.hpp"

using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

dump::Entry tree(const std::string& text) {
  dump::Entry entry;
  dump::build_entry(text, entry, "memory", "value");
  return entry;
}

bool probe_finds(const std::string& text) {
  BadTokenProbe probe;
  const std::string padded = text + std::string(1 + dump::kScanPadding, '\0');
  dump::Scan scan{padded.data(), padded.data() + text.size() + 1, nullptr};
  REQUIRE(dump::scan_value(scan, probe) == dump::ScanStatus::done);
  return probe.found();
}

}  // namespace

TEST_CASE("every spelling of a bad statistic, and what is none") {
  struct Case {
    const char* text;
    Bad bad;
  };
  for (const Case& each :
       {Case{"NaN", kNan},     {"Infinity", kInf}, {"-Infinity", kInf}, {"\"NaN\"", kNan},
        {"\"Nan\"", kNan},     {"\"INF\"", kInf},  {"\"-inf\"", kInf},  {"\"nan\\t\"", kNan},
        {"\"-Inf\\t\"", kInf}, {"1e999", kInf},    {"-1E+400", kInf},   {"\"\\u006ean\"", kNan},
        {"\"Infinity\"", 0},   {"\" nan\"", 0},    {"null", 0},         {"1e39", 0},
        {"1e308", 0},          {"true", 0},        {"\"nan\\n\"", 0},   {"\"n\"", 0},
        {"\"\"", 0},           {"[NaN]", 0},       {"12345", 0},        {"\"-\"", 0}}) {
    CAPTURE(each.text);
    for (const char* key : {"Max", "Min"}) {
      const std::string item = std::string("{\"") + key + "\": " + each.text + "}";
      CHECK(bad_item(tree(item), 0) == each.bad);
      // What the probe lets pass is never looked at again.
      if (each.bad != 0) CHECK(probe_finds(item));
    }
    CHECK(bad_item(tree(std::string("{\"Mean\": ") + each.text + "}"), 0) == 0);
  }
  // An integer of any length is finite in Python.
  CHECK(bad_item(tree("{\"Max\": 1" + std::string(400, '0') + "}"), 0) == 0);
  CHECK(bad_item(tree("{\"Max\": 1" + std::string(400, '0') + ".0}"), 0) == kInf);
  CHECK(probe_finds("{\"Max\": 1" + std::string(400, '0') + ".0}"));
}

TEST_CASE("the probe passes what can hold no bad value") {
  CHECK_FALSE(
      probe_finds(R"({"input_args": [{"type": "torch.Tensor", "Max": -1.25e-07, "Min": 1e+9}], "k": true})"));
  CHECK_FALSE(probe_finds(R"(["name", "info", "int", "type", null, -0.0])"));
}

TEST_CASE("a key that stands twice counts with its last value") {
  CHECK(bad_item(tree(R"({"Max": NaN, "Max": 1.0})"), 0) == 0);
  CHECK(bad_item(tree(R"({"Max": 1.0, "Max": NaN})"), 0) == kNan);
}

TEST_CASE("sections of an entry, items only or all below them") {
  const std::string bad = tensor('n');
  const auto judge = [](const std::string& text, bool nested) {
    const EntryBadness result = judge_entry(tree(text), nested, nullptr);
    return std::vector<int>{result.inputs, result.arguments, result.outputs};
  };
  const std::vector<int> clean{0, 0, 0};
  CHECK(judge(R"({"input": [)" + bad + "]}", false) == std::vector<int>{kNan, 0, 0});
  CHECK(judge(R"({"input_args": [null, 1, )" + bad + "]}", false) == std::vector<int>{kNan, kNan, 0});
  CHECK(judge(R"({"input_kwargs": {"k": )" + bad + "}}", false) == std::vector<int>{kNan, kNan, 0});
  CHECK(judge(R"({"output": )" + bad + "}", false) == clean);  // its values are no objects
  CHECK(judge(R"({"output": {"a": )" + bad + "}}", false) == std::vector<int>{0, 0, kNan});
  CHECK(judge(R"({"parameters": {"w": )" + bad + "}}", true) == clean);
  CHECK(judge(R"({"output": [[)" + bad + "]]}", false) == clean);
  CHECK(judge(R"({"output": [[)" + bad + "]]}", true) == std::vector<int>{0, 0, kNan});
  CHECK(judge(R"({"input_args": [[{"tensor": )" + bad + "}]]}", true) == std::vector<int>{kNan, kNan, 0});
  CHECK(judge("[1]", true) == clean);
  CHECK(judge("null", true) == clean);
}

TEST_CASE("what a transfer receives into is no input") {
  const auto transfer = [](const char* operation) {
    return R"({"input_args": [[{"op": ")" + std::string(operation) + R"(", "peer": 1, "tensor": )" +
           tensor('n') + R"(}]], "output": [[{"op": ")" + operation + R"(", "peer": 1, "tensor": )" +
           tensor('n') + "}]]}";
  };
  CHECK(judge_entry(tree(transfer("irecv")), true, nullptr).inputs == 0);
  CHECK(judge_entry(tree(transfer("irecv")), true, nullptr).outputs == kNan);
  CHECK(judge_entry(tree(transfer("isend")), true, nullptr).inputs == kNan);
}

TEST_CASE("inputs that are only written to are left out") {
  Places places;
  places.positions = {0};
  places.names = {"tensor"};
  const auto inputs = [&](const std::string& text) { return judge_entry(tree(text), true, &places).inputs; };
  CHECK(inputs(R"({"input_args": )" + tensors("nc") + "}") == 0);
  CHECK(inputs(R"({"input_args": )" + tensors("cn") + "}") == kNan);
  CHECK(inputs(R"({"input_kwargs": {"tensor": )" + tensor('n') + "}}") == 0);
  CHECK(inputs(R"({"input_kwargs": {"other": )" + tensor('n') + "}}") == kNan);
}
