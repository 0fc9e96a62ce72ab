// SPDX-License-Identifier: Apache-2.0
#include "anomaly/badness.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "anomaly/entry_probe.hpp"
#include "dump/dump_json.hpp"
#include "dumps.hpp"
#include "unit/dump/entry_text.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::anomaly_badness_test {

using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

/// Inputs and outputs as the probe judges them; nothing if it does not know.
std::optional<std::pair<int, int>> probed(const std::string& text) {
  EntryProbe probe;
  const std::string padded = text + std::string(1 + kScanPadding, '\0');
  Scan scan{padded.data(), padded.data() + text.size() + 1, nullptr};
  REQUIRE(scan_value(scan, probe) == ScanStatus::done);
  if (!probe.known()) return std::nullopt;
  return std::pair<int, int>(probe.badness().inputs, probe.badness().outputs);
}

std::pair<int, int> judged(const std::string& text) {
  const EntryBadness bad = judge_entry(dump::entry_of(text), nullptr);
  return {bad.inputs, bad.outputs};
}

/// Does the probe know? Then it must say the same as the tree.
bool check_probe(const std::string& text) {
  CAPTURE(text);
  const auto known = probed(text);
  if (known) CHECK(*known == judged(text));
  return known.has_value();
}

std::string in_output(const std::string& item) {
  return R"({"input_args": [], "output": [)" + item + "]}";
}

}  // namespace

TEST_CASE("every spelling of a bad statistic, and texts that are no bad ones") {
  struct Case {
    const char* text;
    Bad bad;
    bool known = true;  // not of escapes and of exponents with three digits
  };
  for (const Case& each : {Case{"NaN", kNan},
                           {"Infinity", kInf},
                           {"-Infinity", kInf},
                           {"\"NaN\"", kNan},
                           {"\"Nan\"", kNan},
                           {"\"INF\"", kInf},
                           {"\"-inf\"", kInf},
                           {"\"nan\\t\"", kNan, false},
                           {"\"-Inf\\t\"", kInf, false},
                           {"1e999", kInf, false},
                           {"-1E+400", kInf, false},
                           {"\"\\u006ean\"", kNan, false},
                           {"\"Infinity\"", 0},
                           {"\" nan\"", 0},
                           {"null", 0},
                           {"1e39", 0},
                           {"1e308", 0, false},
                           {"true", 0},
                           {"\"nan\\n\"", 0, false},
                           {"\"n\"", 0},
                           {"\"\"", 0},
                           {"[NaN]", 0},
                           {"12345", 0},
                           {"\"-\"", 0}}) {
    CAPTURE(each.text);
    for (const char* key : {"Max", "Min"}) {
      const std::string item = std::string("{\"") + key + "\": " + each.text + "}";
      CHECK(dump::bad_item(dump::entry_of(item), 0) == each.bad);
      CHECK(check_probe(in_output(item)) == each.known);
    }
    CHECK(dump::bad_item(dump::entry_of(std::string("{\"Mean\": ") + each.text + "}"), 0) == 0);
  }
  // An integer of any length is finite in Python.
  CHECK(dump::bad_item(dump::entry_of("{\"Max\": 1" + std::string(400, '0') + "}"), 0) == 0);
  CHECK(dump::bad_item(dump::entry_of("{\"Max\": 1" + std::string(400, '0') + ".0}"), 0) == kInf);
  CHECK_FALSE(check_probe(in_output("{\"Max\": 1" + std::string(400, '0') + ".0}")));
}

TEST_CASE("the probe knows entries as they usually are, without a tree") {
  for (const auto& [in, out] : {std::pair("cc", "c"), {"cn", "c"}, {"c", "ni"}, {"ci", "n"}, {"", ""}}) {
    const std::string text = R"({"input_args": )" + tensors(in) + R"(, "input_kwargs": {"a": )" +
                             tensor_json('c') +
                             R"(, "b": null, "c": {"type": "int", "value": 3}}, "output": [)" + tensors(out) +
                             "], \"parameters\": {\"w\": " + tensor_json('n') + "}}";
    REQUIRE(probed(text));
    CHECK(*probed(text) == judged(text));
  }
}

TEST_CASE("the probe says what the tree says, or that it does not know") {
  const std::string bad = R"({"Max": NaN})";
  const std::string good = R"({"Max": 1.0})";
  struct Case {
    std::string text;
    bool known;
  };
  for (const Case& each : std::vector<Case>{
           {"{\"output\": [" + bad + "], \"output\": [" + good + "]}", false},
           {"{\"output\": [" + good + "], \"output\": [" + bad + "]}", false},
           {"{\"input_kwargs\": {\"a\": " + bad + ", \"a\": " + good + "}}", false},
           {"{\"input_kwargs\": {\"a\": " + bad + ", \"\\u0061\": " + good + "}}", false},
           {"{\"\\u006futput\": [" + bad + "]}", false},
           {in_output(R"({"Max": NaN, "Max": 1.0})"), false},
           {in_output(R"({"M\u0061x": NaN})"), false},
           {in_output(R"({"x": {"Max": NaN}, "x": 1})"), false},
           {in_output(R"({"x": [{"Max": NaN}], "Max": 1.0})"), false},
           {in_output(R"({"shape": [2, {"Max": NaN}]})"), false},
           {in_output(R"([[{"Max": NaN}], {"Min": "-INF"}])"), true},
           {in_output(R"({"Max": {"Max": NaN}})"), false},
           {in_output(R"({"Max": [NaN], "Min": [[]]})"), true},
           {in_output(R"("Max", NaN)"), true},
           {R"({"output": {"Max": NaN}})", true},
           {R"({"output": {"Max": {"Max": NaN}}})", true},
           {R"({"output": NaN, "input": "nan"})", true},
           {R"([{"output": [{"Max": NaN}]}])", true},
           {R"({"other": {"output": [{"Max": NaN}]}})", true},
           {R"({"other": 1, "output": [{"Max": NaN}], "input": [{"Min": Infinity}], "x": [{"Max": NaN}]})",
            true},
           {"null", true},
           {"NaN", true},
       }) {
    CAPTURE(each.text);
    CHECK(check_probe(each.text) == each.known);
  }
}

TEST_CASE("the probe and the tree agree on the golden dumps") {
  const auto file = open_file(test::in_source("tests/data/golden/anomaly/entries.json"));
  std::size_t entries = 0;
  std::size_t known = 0;
  dump::read_values(*file, [&](dump::MemberStream& stream, std::string_view) {
    known += check_probe(std::string(stream.skip())) ? 1 : 0;
    ++entries;
  });
  CHECK(entries > 200);
  CHECK(known > entries * 9 / 10);  // or it would spare nothing
}

TEST_CASE("a key that stands twice counts with its last value") {
  CHECK(dump::bad_item(dump::entry_of(R"({"Max": NaN, "Max": 1.0})"), 0) == 0);
  CHECK(dump::bad_item(dump::entry_of(R"({"Max": 1.0, "Max": NaN})"), 0) == kNan);
}

TEST_CASE("sections of an entry, and all below them") {
  const std::string bad = tensor_json('n');
  const auto judge = [](const std::string& text) {
    const EntryBadness result = judge_entry(dump::entry_of(text), nullptr);
    return std::vector<int>{result.inputs, result.outputs};
  };
  const std::vector<int> clean{0, 0};
  CHECK(judge(R"({"input": [)" + bad + "]}") == std::vector<int>{kNan, 0});
  CHECK(judge(R"({"input_args": [null, 1, )" + bad + "]}") == std::vector<int>{kNan, 0});
  CHECK(judge(R"({"input_kwargs": {"k": )" + bad + "}}") == std::vector<int>{kNan, 0});
  CHECK(judge(R"({"output": )" + bad + "}") == clean);  // its values are no objects
  CHECK(judge(R"({"output": {"a": )" + bad + "}}") == std::vector<int>{0, kNan});
  CHECK(judge(R"({"parameters": {"w": )" + bad + "}}") == clean);
  CHECK(judge(R"({"output": [[)" + bad + "]]}") == std::vector<int>{0, kNan});
  CHECK(judge(R"({"input_args": [[{"tensor": )" + bad + "}]]}") == std::vector<int>{kNan, 0});
  CHECK(judge("[1]") == clean);
  CHECK(judge("null") == clean);
}

TEST_CASE("what a transfer receives into is no input") {
  const auto transfer = [](const char* operation) {
    return R"({"input_args": [[{"op": ")" + std::string(operation) + R"(", "peer": 1, "tensor": )" +
           tensor_json('n') + R"(}]], "output": [[{"op": ")" + operation + R"(", "peer": 1, "tensor": )" +
           tensor_json('n') + "}]]}";
  };
  CHECK(judge_entry(dump::entry_of(transfer("irecv")), nullptr).inputs == 0);
  CHECK(judge_entry(dump::entry_of(transfer("irecv")), nullptr).outputs == kNan);
  CHECK(judge_entry(dump::entry_of(transfer("isend")), nullptr).inputs == kNan);
}

TEST_CASE("inputs that are only written to are left out") {
  ArgumentPlaces places;
  places.positions = {0};
  places.names = {"tensor"};
  const auto inputs = [&](const std::string& text) {
    return judge_entry(dump::entry_of(text), &places).inputs;
  };
  CHECK(inputs(R"({"input_args": )" + tensors("nc") + "}") == 0);
  CHECK(inputs(R"({"input_args": )" + tensors("cn") + "}") == kNan);
  CHECK(inputs(R"({"input_kwargs": {"tensor": )" + tensor_json('n') + "}}") == 0);
  CHECK(inputs(R"({"input_kwargs": {"other": )" + tensor_json('n') + "}}") == kNan);
}

}  // namespace msprobe::anomaly_badness_test
