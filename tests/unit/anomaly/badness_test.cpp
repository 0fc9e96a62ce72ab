// SPDX-License-Identifier: Apache-2.0
#include "anomaly/badness.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "anomaly/entry_probe.hpp"
#include "dump/dump_json.hpp"
#include "dumps.hpp"
#include "unit/dump/entry_text.hpp"

using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

/// What the probe says of an entry; nothing if it does not know.
std::optional<std::pair<int, int>> probed(const std::string& text, bool nested) {
  EntryProbe probe(nested);
  const std::string padded = text + std::string(1 + kScanPadding, '\0');
  Scan scan{padded.data(), padded.data() + text.size() + 1, nullptr};
  REQUIRE(scan_value(scan, probe) == ScanStatus::done);
  if (!probe.known()) return std::nullopt;
  return std::pair<int, int>(probe.badness().inputs, probe.badness().outputs);
}

std::pair<int, int> judged(const std::string& text, bool nested) {
  const EntryBadness bad = judge_entry(dump::entry_of(text), nested, nullptr);
  return {bad.inputs, bad.outputs};
}

/// The probe must say the same, or nothing.
void check_probe(const std::string& text) {
  CAPTURE(text);
  for (const bool nested : {false, true}) {
    const auto said = probed(text, nested);
    if (said) CHECK(*said == judged(text, nested));
  }
}

std::string in_output(const std::string& item) {
  return R"({"input_args": [], "output": [)" + item + "]}";
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
      CHECK(bad_item(dump::entry_of(item), 0) == each.bad);
      check_probe(in_output(item));
    }
    CHECK(bad_item(dump::entry_of(std::string("{\"Mean\": ") + each.text + "}"), 0) == 0);
  }
  // An integer of any length is finite in Python.
  CHECK(bad_item(dump::entry_of("{\"Max\": 1" + std::string(400, '0') + "}"), 0) == 0);
  CHECK(bad_item(dump::entry_of("{\"Max\": 1" + std::string(400, '0') + ".0}"), 0) == kInf);
  check_probe(in_output("{\"Max\": 1" + std::string(400, '0') + ".0}"));
}

TEST_CASE("the probe knows entries as they usually are, without a tree") {
  for (const bool nested : {false, true}) {
    for (const auto& [in, out] : {std::pair("cc", "c"), {"cn", "c"}, {"c", "ni"}, {"ci", "n"}, {"", ""}}) {
      const std::string text = R"({"input_args": )" + tensors(in) + R"(, "input_kwargs": {"a": )" +
                               tensor('c') +
                               R"(, "b": null, "c": {"type": "int", "value": 3}}, "output": [)" +
                               tensors(out) + "], \"parameters\": {\"w\": " + tensor('n') + "}}";
      REQUIRE(probed(text, nested));
      CHECK(*probed(text, nested) == judged(text, nested));
    }
  }
}

TEST_CASE("the probe says what the tree says, or that it does not know") {
  const std::string bad = R"({"Max": NaN})";
  const std::string good = R"({"Max": 1.0})";
  for (
      const std::string& text : {
          "{\"output\": [" + bad + "], \"output\": [" + good + "]}",
          "{\"output\": [" + good + "], \"output\": [" + bad + "]}",
          "{\"input_kwargs\": {\"a\": " + bad + ", \"a\": " + good + "}}",
          "{\"input_kwargs\": {\"a\": " + bad + ", \"\\u0061\": " + good + "}}",
          "{\"\\u006futput\": [" + bad + "]}",
          in_output(R"({"Max": NaN, "Max": 1.0})"),
          in_output(R"({"M\u0061x": NaN})"),
          in_output(R"({"x": {"Max": NaN}, "x": 1})"),
          in_output(R"({"x": [{"Max": NaN}], "Max": 1.0})"),
          in_output(R"({"shape": [2, {"Max": NaN}]})"),
          in_output(R"([[{"Max": NaN}], {"Min": "-INF"}])"),
          in_output(R"({"Max": {"Max": NaN}})"),
          in_output(R"({"Max": [NaN], "Min": [[]]})"),
          in_output(R"("Max", NaN)"),
          std::string(R"({"output": {"Max": NaN}})"),
          std::string(R"({"output": {"Max": {"Max": NaN}}})"),
          std::string(R"({"output": NaN, "input": "nan"})"),
          std::string(R"([{"output": [{"Max": NaN}]}])"),
          std::string(R"({"other": {"output": [{"Max": NaN}]}})"),
          std::string(
              R"({"other": 1, "output": [{"Max": NaN}], "input": [{"Min": Infinity}], "x": [{"Max": NaN}]})"),
          std::string("null"),
          std::string("NaN"),
      }) {
    check_probe(text);
  }
}

TEST_CASE("the probe and the tree agree on the golden dumps") {
  namespace fs = std::filesystem;
  const char* root = std::getenv("MSPROBE_SOURCE_ROOT");
  const fs::path cases = fs::path(root == nullptr ? "." : root) / "tests/data/golden/anomaly/cases";
  std::size_t entries = 0;
  for (const auto& each : fs::recursive_directory_iterator(cases)) {
    if (each.path().filename() != "dump.json") continue;
    dump::read_values(*open_file(each.path().string()), [&](dump::MemberStream& stream, std::string_view) {
      check_probe(std::string(stream.skip()));
      ++entries;
    });
  }
  CHECK(entries > 200);
}

TEST_CASE("a key that stands twice counts with its last value") {
  CHECK(bad_item(dump::entry_of(R"({"Max": NaN, "Max": 1.0})"), 0) == 0);
  CHECK(bad_item(dump::entry_of(R"({"Max": 1.0, "Max": NaN})"), 0) == kNan);
}

TEST_CASE("sections of an entry, items only or all below them") {
  const std::string bad = tensor('n');
  const auto judge = [](const std::string& text, bool nested) {
    const EntryBadness result = judge_entry(dump::entry_of(text), nested, nullptr);
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
  CHECK(judge_entry(dump::entry_of(transfer("irecv")), true, nullptr).inputs == 0);
  CHECK(judge_entry(dump::entry_of(transfer("irecv")), true, nullptr).outputs == kNan);
  CHECK(judge_entry(dump::entry_of(transfer("isend")), true, nullptr).inputs == kNan);
}

TEST_CASE("inputs that are only written to are left out") {
  Places places;
  places.positions = {0};
  places.names = {"tensor"};
  const auto inputs = [&](const std::string& text) {
    return judge_entry(dump::entry_of(text), true, &places).inputs;
  };
  CHECK(inputs(R"({"input_args": )" + tensors("nc") + "}") == 0);
  CHECK(inputs(R"({"input_args": )" + tensors("cn") + "}") == kNan);
  CHECK(inputs(R"({"input_kwargs": {"tensor": )" + tensor('n') + "}}") == 0);
  CHECK(inputs(R"({"input_kwargs": {"other": )" + tensor('n') + "}}") == kNan);
}
