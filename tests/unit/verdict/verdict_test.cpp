// SPDX-License-Identifier: Apache-2.0
#include "verdict/result.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "unit/compare/dumps.hpp"

namespace msprobe::compare_verdict_test {

using namespace compare;  // helpers of tests

using namespace msprobe;
using namespace msprobe::verdict;
using measuring::Mode;
using pairing::default_rules;

namespace {

using Values = std::vector<std::pair<const char*, const char*>>;  // target and reference
using Lines = std::vector<std::string>;

/// "error 3 8": the verdict and the numbers of the rules that spoke.
std::string told(const RankResult& result, std::size_t index) {
  static const std::vector<std::pair<const char*, const char*>> kRules = {
      {"nan/inf/-inf in the maximum", "1"},
      {"One Thousandth Err Ratio > 0.9", "2"},
      {"NormRelativeErr of output is greater than 0.5.", "3"},
      {"Required_Grad of NPU and Bench", "4"},
      {"scalar parameters", "5"},
      {"The dtype of NPU and Bench are inconsistent.", "6"},
      {"The shape of NPU and Bench are inconsistent.", "7"},
      {"norm relative error of output is 10 times", "8"},
      {"of Cosine > 0.9, and input/parameters - output > 0.1", "9"},
      {"CRC-32", "crc"},
      {"does not match the bench", "one"},
      {"Neither side recorded", "none"},
      {"unmatched", "unmatched"},
      {"but not this item", "item"},
      {"dtypes cannot be compared (Bench: ", "dtypes"},
  };
  std::string out(verdict_name(result.verdict(index)));
  for (const std::string& message : messages_of(result, index)) {
    std::string rule = " ?" + message;
    for (const auto& [part, number] : kRules) {
      if (message.find(part) != std::string::npos) rule = std::string(" ") + number;
    }
    out += rule;
  }
  return out;
}

Lines told(const RankResult& result) {
  Lines out;
  for (std::size_t i = 0; i < result.rows.size(); ++i) out.push_back(told(result, i));
  return out;
}

std::string list(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

/// One entry whose tensors have these values in all statistics.
RankResult statistics(const Values& inputs, const Values& outputs, bool python,
                      std::string_view name = "Torch.a.0.forward") {
  std::array<std::vector<std::string>, 4> parts;
  for (const auto& [npu, bench] : inputs) {
    parts[0].push_back(tensor_json(npu));
    parts[1].push_back(tensor_json(bench));
  }
  for (const auto& [npu, bench] : outputs) {
    parts[2].push_back(tensor_json(npu));
    parts[3].push_back(tensor_json(bench));
  }
  return judged(forward_json(name, list(parts[0]), list(parts[2])),
                forward_json(name, list(parts[1]), list(parts[3])), Mode::statistics, python);
}

/// The outputs' verdicts by our rules and by Python's.
struct Both {
  Lines ours;
  Lines python;
};

Both outputs(const Values& inputs, const Values& values) {
  Both both;
  for (const bool python : {false, true}) {
    const Lines all = told(statistics(inputs, values, python));
    (python ? both.python : both.ours)
        .assign(all.begin() + static_cast<std::ptrdiff_t>(inputs.size()), all.end());
  }
  return both;
}

/// One entry with an input and outputs of these ratios and cosines.
struct Measured {
  double ratio = 1.0;
  double cosine = 1.0;
};

Lines tensors(const Measured& input, const std::vector<Measured>& values, bool python,
              std::string_view name = "Torch.a.0.forward") {
  const std::vector<std::string> all(values.size(), tensor_json("1"));
  const std::string members = forward_json(name, tensor_json("1"), list(all));
  RankResult result = matched(members, members, Mode::tensor, python);
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const Measured& each = i == 0 ? input : values[i - 1];
    result.metrics[i].status = measuring::MetricStatus::computed;
    result.metrics[i].value[measuring::kOneThousandth] = each.ratio;
    result.metrics[i].value[measuring::kCosine] = each.cosine;
  }
  result.judgement = judge(result, default_rules());
  return told(result);
}

/// The verdicts of one input pair and one output pair given as JSON.
Lines pair(const std::string& npu, const std::string& bench, bool python, Mode mode = Mode::statistics,
           std::string_view name = "Torch.a.0.forward", bool as_output = false) {
  const std::string target = as_output ? forward_json(name, "", npu) : forward_json(name, npu, "");
  const std::string golden = as_output ? forward_json(name, "", bench) : forward_json(name, bench, "");
  return told(judged(target, golden, mode, python));
}

void same(const std::string& npu, const std::string& bench, const std::string& want,
          Mode mode = Mode::statistics) {
  CAPTURE(npu);
  CAPTURE(bench);
  CHECK(pair(npu, bench, false, mode) == Lines{want});
  CHECK(pair(npu, bench, true, mode) == Lines{want});
}

/// Graphs pair the inputs of an entry whatever their dtypes.
void pair_first_inputs(RankResult& result) {
  if (!result.golden.items.empty() && result.golden.items[0].state == dump::State::input)
    result.rows[0] = {.target = 0, .golden = 0};
}

}  // namespace

TEST_CASE("statistics: what both rule sets say of an output") {
  const auto check = [](const Values& inputs, const Values& values, const Lines& want) {
    const Both both = outputs(inputs, values);
    CHECK(both.ours == want);
    CHECK(both.python == want);
  };
  check({{"1.05", "1"}}, {{"3", "1"}}, {"error 3 8"});
  check({{"1", "1"}}, {{"1.5", "1"}}, {"warning 8"});  // 50 % is not above 0.5
  check({{"1.1", "1"}}, {{"1.6", "1"}}, {"pass"});     // 10.000000000000009 % is not below 0.1
  check({{"1", "1"}}, {{"1.2", "1"}}, {"warning 8"});
  check({{"1", "1"}}, {{"1.1", "1"}}, {"warning 8"});
  check({{"1", "1"}}, {{"1.0625", "1"}}, {"pass"});         // not above 0.1
  check({{"1.0625", "1"}}, {{"1.625", "1"}}, {"error 3"});  // exactly ten times is not above it
  check({{"1.2", "1"}}, {{"1.5", "1"}}, {"pass"});
  check({{"NaN", "NaN"}}, {{"1.5", "1"}}, {"warning 8"});
  check({{"NaN", "NaN"}}, {{"Infinity", "Infinity"}}, {"pass"});
  check({}, {{"5", "1"}}, {"error 3 8"});
  CHECK(told(statistics({{"5", "1"}}, {}, false)) == Lines{"pass"});
  CHECK(told(statistics({{"5", "1"}}, {}, true)) == Lines{"pass"});
}

TEST_CASE("statistics: the output that is bad is marked, not the first one") {
  const Both late = outputs({{"1.01", "1"}}, {{"1", "1"}, {"1.2", "1"}});
  CHECK(late.ours == Lines{"pass", "warning 8"});
  CHECK(late.python == Lines{"warning 8", "pass"});
  const Both all = outputs({{"1", "1"}}, {{"1.2", "1"}, {"1", "1"}, {"3", "1"}});
  CHECK(all.ours == Lines{"warning 8", "pass", "error 3 8"});
  CHECK(all.python == Lines{"warning 8", "pass", "error 3"});
}

TEST_CASE("statistics: infinite relative errors are infinite") {
  const Both output = outputs({{"1", "1"}}, {{"1", "0"}});
  CHECK(output.ours == Lines{"error 3 8"});
  CHECK(output.python == Lines{"error 3"});
  // An input that is infinitely off explains every output.
  const Both input = outputs({{"1", "0"}}, {{"9", "1"}});
  CHECK(input.ours == Lines{"pass"});
  CHECK(input.python == Lines{"error 3 8"});
  const Both other = outputs({{"1", "NaN"}}, {{"1", "Infinity"}});
  CHECK(other.ours == Lines{"error 3 8"});
  CHECK(other.python == Lines{"error 3"});
}

TEST_CASE("messages are in the order of the rules") {
  const std::string npu = tensor_json("Infinity", "torch.float16", "[3, 2]", R"(, "requires_grad": true)");
  const std::string bench = tensor_json("1", "torch.float32", "[2, 3]", R"(, "requires_grad": false)");
  const std::string input = tensor_json("1");
  CHECK(told(judged(forward_json("Torch.a.0.forward", input, npu),
                    forward_json("Torch.a.0.forward", input, bench), Mode::statistics, true)) ==
        Lines{"pass", "error 1 3 4 6 7"});
  CHECK(told(judged(forward_json("Torch.a.0.forward", input, npu),
                    forward_json("Torch.a.0.forward", input, bench), Mode::statistics, false)) ==
        Lines{"pass", "error 1 3 4 6 7 8"});
}

TEST_CASE("statistics: a norm that overflowed in the recorder is unknown, not wrong") {
  const auto tensor = [](const char* max, const char* norm) {
    return std::string(R"({"type": "torch.Tensor", "dtype": "torch.float16", "shape": [9, 9], "Max": )") +
           max + R"(, "Min": -1.0, "Mean": 0.5, "Norm": )" + norm + "}";
  };
  const auto call = [&](const std::string& output) {
    return forward_json("Torch.a.0.forward", tensor_json("1"), output);
  };
  const auto output = [&](const std::string& target, const std::string& golden, bool python) {
    return told(judged(call(target), call(golden), Mode::statistics, python)).back();
  };
  for (const bool python : {false, true}) {
    CAPTURE(python);
    const auto found = [&](const char* side) {
      return python ? "error 3" : fmt::format("pass ?Not compared: L2norm (only in {}).", side);
    };
    CHECK(output(tensor("2e4", "Infinity"), tensor("2e4", "9e4"), python) == found("Bench"));
    CHECK(output(tensor("2e4", "9e4"), tensor("2e4", "Infinity"), python) == found("NPU"));
  }
  CHECK(output(tensor("Infinity", "Infinity"), tensor("2e4", "9e4"), false) == "error 1 3 8");
  CHECK(output(tensor("2e4", "9e4"), tensor("2e4", "3e4"), false) == "error 3 8");
}

TEST_CASE("statistics: the precision of recorders that weights of calls show counts for rows") {
  const auto tensor = [](double norm) {
    return fmt::format(R"({{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [100, 100], )"
                       R"("Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": {}}})",
                       norm);
  };
  constexpr double kNorm = 57.7350269;
  constexpr double kWeight = kNorm * (1 + 7e-6);  // within what float32 sums are off by
  constexpr double kInput = kNorm * (1 + 2e-5);   // beyond it
  constexpr double kOutput = kNorm * (1 + 3e-4);
  const auto calls = [&](double input, double weight, double output) {
    std::vector<std::string> members;
    for (int i = 0; i < 6; ++i) {
      const std::string name = "Functional.linear." + std::to_string(i) + ".forward";
      members.push_back(forward_json(name, list({tensor(input), tensor(weight)}), tensor(output)));
    }
    return list(members);
  };
  const auto last = [&](double weight) {
    return told(judged(calls(kInput, weight, kOutput), calls(kNorm, kNorm, kNorm), Mode::statistics, false))
        .back();
  };
  CHECK(last(kNorm) == "warning 8");
  CHECK(last(kWeight) == "pass");
}

TEST_CASE("rule 1: NaN or Inf on the target's side only") {
  same(tensor_json("NaN"), tensor_json("1"), "error 1");
  same(tensor_json("Infinity"), tensor_json("1"), "error 1");
  same(tensor_json("-Infinity"), tensor_json("1"), "error 1");
  same(tensor_json("NaN"), tensor_json("Infinity"), "pass");
  same(tensor_json("1"), tensor_json("NaN"), "pass");
  same(scalar_json("str", "\" NaN \""), scalar_json("str", "\" NaN \""), "pass");
  CHECK(pair(tensor_json("NaN"), "", true) == Lines{"error 1"});
  CHECK(pair(tensor_json("NaN"), "", false) == Lines{"error item 1"});
}

TEST_CASE("rule 4: requires_grad, where not knowing is a value") {
  const auto grad = [](const char* value) {
    return tensor_json("1", "torch.float32", "[2]", std::string(", \"requires_grad\": ") + value);
  };
  same(grad("true"), grad("true"), "pass");
  same(grad("true"), grad("false"), "error 4");
  same(grad("false"), tensor_json("1", "torch.float32", "[2]"), "error 4");
}

TEST_CASE("rule 4: across frameworks an attribute that one of them does not record does not differ") {
  const std::string told = tensor_json("1", "torch.float32", "[2]", R"(, "requires_grad": true)");
  const std::string denied = tensor_json("1", "torch.float32", "[2]", R"(, "requires_grad": false)");
  const std::string untold = tensor_json("1", "torch.float32", "[2]");
  const auto errors = [](const std::string& npu, const std::string& bench, bool python) {
    RankResult result;
    if (python) result.python = measuring::python_rules();
    result.target = side_of(forward_json("Torch.a.0.forward", npu, ""), "mindspore");
    result.golden = side_of(forward_json("Torch.a.0.forward", bench, ""), "pytorch");
    result.rows.push_back({.target = 0, .golden = 0});
    result.judgement = judge(result, default_rules());
    return messages_of(result, 0).size();
  };
  CHECK(errors(untold, told, false) == 0);
  CHECK(errors(told, untold, false) == 0);
  CHECK(errors(denied, told, false) == 1);
  CHECK(errors(untold, told, true) == 1);
}

TEST_CASE("rule 5: arguments that are no tensors, inputs only") {
  same(scalar_json("int", "1"), scalar_json("int", "1"), "pass");
  same(scalar_json("int", "1"), scalar_json("int", "2"), "error 5");
  same(scalar_json("bool", "true"), scalar_json("bool", "false"), "error 5");
  same(scalar_json("str", "\"sum\""), scalar_json("str", "\"mean\""), "error 5");
  same(scalar_json("str", "\"npu:0\""), scalar_json("str", "\"cuda:0\""), "error 5");
  same(scalar_json("torch.dtype", "\"torch.float16\""), scalar_json("torch.dtype", "\"torch.float32\""),
       "error 5");
  for (const bool python : {false, true}) {
    CHECK(pair(scalar_json("int", "1"), scalar_json("int", "2"), python, Mode::statistics,
               "Torch.a.0.forward", true) == Lines{"warning 8"});
  }
}

TEST_CASE("rule 6: types, or their spelling by Python's rules") {
  same(tensor_json("1", "torch.float16"), tensor_json("1", "torch.float32"), "error 6");
  same(tensor_json("1", "torch.bfloat16"), tensor_json("1", "torch.float16"), "error 6");
  for (const char* name : {"Module.qkv_proj.Linear.forward.0", "Module.gate_up_proj.Linear.forward.0"}) {
    CHECK(pair(tensor_json("1", "torch.float16"), tensor_json("1"), false, Mode::statistics, name) ==
          Lines{"error 6"});
    CHECK(pair(tensor_json("1", "torch.float16"), tensor_json("1"), true, Mode::statistics, name) ==
          Lines{"pass"});
  }
  // With rules that let both frameworks pair, Float32 is torch.float32.
  for (const bool python : {false, true}) {
    RankResult result;
    if (python) result.python = measuring::python_rules();
    result.target =
        side_of(forward_json("Torch.a.0.forward", tensor_json("1", "Float32"), tensor_json("1", "Float32")));
    result.golden =
        side_of(forward_json("Torch.a.0.forward", tensor_json("1"), tensor_json("1", "torch.float16")));
    result.rows = {{.target = 0, .golden = 0}, {.target = 1, .golden = 1}};
    result.judgement = judge(result, default_rules());
    CHECK(told(result) == (python ? Lines{"error 6", "error 6"} : Lines{"pass", "error 6"}));
  }
}

TEST_CASE("rule 7: shapes") {
  same(tensor_json("1", "torch.float32", "[2, 3]"), tensor_json("1", "torch.float32", "[3, 2]"), "error 7");
  same(tensor_json("1", "torch.float32", "[]"), tensor_json("1", "torch.float32", "[1]"), "error 7");
}

TEST_CASE("rows without partner: a warning with its reason, or Python's pass") {
  const auto both = [](const std::string& golden, const std::string& want) {
    CHECK(told(judged(forward_json("Torch.a.0.forward", tensor_json("1"), ""), golden, Mode::statistics,
                      false)) == Lines{want});
    CHECK(told(judged(forward_json("Torch.a.0.forward", tensor_json("1"), ""), golden, Mode::statistics,
                      true)) == Lines{"pass"});
  };
  both("", "warning unmatched");
  both(forward_json("Torch.a.0.forward", "", tensor_json("1")), "warning item");
  both(forward_json("Torch.a.0.forward", tensor_json("1", "torch.int32"), ""), "warning dtypes");
}

TEST_CASE("an unneeded gradient is null to MSAdapter and nothing to PyTorch") {
  const auto backward = [](const std::string& outputs) {
    return R"("Module.a.Conv2d.backward.0": {"input": [)" + tensor_json("1") + R"(], "output": [)" + outputs +
           "]}";
  };
  const auto rows = [&](const char* ours, const char* theirs, const std::string& target,
                        const std::string& golden) {
    RankResult result;
    result.mode = Mode::statistics;
    result.target = side_of(target, ours);
    result.golden = side_of(golden, theirs);
    const pairing::Matching matching = pairing::match(result.target, result.golden, {}, default_rules());
    result.rows = matching.pairs;
    result.judgement = judge(result, default_rules());
    Lines lines = told(result);
    lines.push_back(std::to_string(matching.golden_only));
    return lines;
  };
  const std::string with_null = backward("null");
  const std::string without = backward("");
  CHECK(rows("mindtorch", "pytorch", with_null, without) == Lines{"pass", "pass", "0"});
  CHECK(rows("pytorch", "mindtorch", without, with_null) == Lines{"pass", "0"});
  // This holds neither for a value that the other side lacks, nor for a null in one framework or of an input.
  CHECK(rows("mindtorch", "pytorch", backward(tensor_json("1")), without) ==
        Lines{"pass", "warning item", "0"});
  CHECK(rows("pytorch", "mindtorch", without, backward(tensor_json("1"))) == Lines{"pass", "1"});
  CHECK(rows("pytorch", "pytorch", with_null, without) == Lines{"pass", "warning item", "0"});
  CHECK(rows("mindtorch", "pytorch", forward_json("Module.a.Conv2d.forward.0", "null", ""),
             forward_json("Module.a.Conv2d.forward.0", "", "")) == Lines{"warning item", "0"});
  CHECK(rows("mindtorch", "pytorch", with_null, forward_json("Module.a.Conv2d.forward.0", "", "")) ==
        Lines{"warning unmatched", "warning unmatched", "0"});
}

TEST_CASE("tensors: rule 2 at its limits") {
  for (const bool python : {false, true}) {
    CHECK(tensors({}, {{0.0, 1.0}}, python) == Lines{"pass", "error 2"});
    CHECK(tensors({}, {{0.0999, 1.0}}, python) == Lines{"pass", "error 2"});
    CHECK(tensors({}, {{0.1, 1.0}}, python) == Lines{"pass", "pass"});
    CHECK(tensors({0.9, 1.0}, {{0.0, 1.0}}, python) == Lines{"pass", "pass"});
    CHECK(tensors({0.91, 1.0}, {{0.0, 1.0}}, python) == Lines{"pass", "error 2"});
  }
  CHECK(tensors({}, {{1.0, 1.0}, {0.0, 1.0}}, false) == Lines{"pass", "pass", "error 2"});
  CHECK(tensors({}, {{1.0, 1.0}, {0.0, 1.0}}, true) == Lines{"pass", "error 2", "pass"});
}

TEST_CASE("tensors: the message of rule 2 names the threshold that was used") {
  const std::string members = forward_json("Torch.a.0.forward", tensor_json("1"), tensor_json("1"));
  for (const bool python : {false, true}) {
    RankResult result = matched(members, members, Mode::tensor, python);
    for (measuring::TensorMetrics& metrics : result.metrics)
      metrics.status = measuring::MetricStatus::computed;
    result.metrics[0].value = {1, 0, 0, 0, 1, 1};
    result.metrics[1].value = {1, 0, 0, 0, 0.4, 1};
    pairing::Rules rules = default_rules();
    rules.ratio_output_below = 0.5;
    result.judgement = judge(result, rules);
    CHECK(messages_of(result, 1) ==
          Lines{std::string(
                    "error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < ") +
                (python ? "0.6." : "0.5.")});
  }
}

TEST_CASE("tensors: rule 9 at its limits") {
  for (const bool python : {false, true}) {
    CHECK(tensors({}, {{1.0, 0.0}}, python) == Lines{"pass", "warning 9"});
    CHECK(tensors({}, {{1.0, 0.9}}, python) == Lines{"pass", "pass"});  // a drop of 0.1 is not above it
    CHECK(tensors({}, {{1.0, 0.875}}, python) == Lines{"pass", "warning 9"});
    CHECK(tensors({1.0, 0.9}, {{1.0, 0.0}}, python) == Lines{"pass", "pass"});
    CHECK(tensors({}, {{0.0, -1.0}}, python) == Lines{"pass", "error 2 9"});
  }
  CHECK(tensors({}, {{1.0, 1.0}, {1.0, 0.0}}, false) == Lines{"pass", "pass", "warning 9"});
  CHECK(tensors({}, {{1.0, 1.0}, {1.0, 0.0}}, true) == Lines{"pass", "warning 9", "pass"});
}

TEST_CASE("tensors: what was not measured enters no aggregate") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool python : {false, true}) {
    CHECK(tensors({nan, nan}, {{0.0, 0.0}}, python) == Lines{"pass", "error 2 9"});
    CHECK(tensors({}, {{nan, nan}}, python) == Lines{"pass", "pass"});
    CHECK(tensors({}, {{0.0, nan}}, python) == Lines{"pass", "error 2"});
  }
}

TEST_CASE("operations that are never judged, and those judged by their outputs") {
  for (const bool python : {false, true}) {
    for (const char* name : {"empty", "empty_like", "numpy", "to", "__setitem__", "empty_with_format",
                             "new_empty_strided", "new_empty", "empty_strided"}) {
      CHECK(told(statistics({{"1", "1"}}, {{"NaN", "1"}}, python,
                            "Tensor." + std::string(name) + ".0.forward")) == Lines{"pass", "pass"});
    }
    for (const char* name :
         {"_reduce_scatter_base", "_all_gather_base", "all_to_all_single", "batch_isend_irecv"}) {
      const std::string entry = "Distributed." + std::string(name) + ".0.forward";
      // Row by row rules on outputs only; no rule that looks at both.
      CHECK(told(statistics({{"NaN", "1"}}, {{"NaN", "1"}}, python, entry)) == Lines{"pass", "error 1"});
      CHECK(told(statistics({{"1", "1"}}, {{"9", "1"}}, python, entry)) == Lines{"pass", "pass"});
      CHECK(tensors({}, {{0.0, 0.0}}, python, entry) == Lines{"pass", "pass"});
    }
    CHECK(told(statistics({{"1", "1"}}, {{"9", "1"}}, python, "Tensor.setitem.0.forward")) ==
          Lines{"pass", "error 3 8"});
  }
}

TEST_CASE("an entry without inputs is known by its name; Python's rules do not know it") {
  CHECK(told(statistics({}, {{"NaN", "1"}}, false, "Torch.empty.0.forward")) == Lines{"pass"});
  CHECK(told(statistics({}, {{"NaN", "1"}}, true, "Torch.empty.0.forward")) == Lines{"error 1"});
}

TEST_CASE("a module named like an exempt operation is judged") {
  CHECK(told(statistics({{"1", "1"}}, {{"9", "1"}}, false, "Module.to.Linear.forward.0")) ==
        Lines{"pass", "error 3 8"});
}

TEST_CASE("checksums") {
  const auto hashed = [](const char* md5) {
    return tensor_json("1", "torch.float32", "[2]", std::string(", \"md5\": ") + md5);
  };
  const Mode md5 = Mode::md5;
  same(hashed("\"0a0b0c0d\""), hashed("\"0a0b0c0d\""), "pass", md5);
  same(hashed("\"0a0b0c0d\""), hashed("\"0a0b0c0e\""), "error crc", md5);
  same(scalar_json("int", "1"), scalar_json("int", "2"), "error crc", md5);
  same("null", "null", "pass", md5);
  same(tensor_json("1", "torch.float32", "[2]", R"(, "md5": "aaaaaaaa", "requires_grad": true)"),
       tensor_json("9", "torch.float16", "[3]", R"(, "md5": "aaaaaaaa", "requires_grad": false)"), "pass",
       md5);
  // Nothing recorded: Python takes the checksum of nothing for equal.
  CHECK(pair(tensor_json("1"), tensor_json("1"), false, md5) == Lines{"warning none"});
  CHECK(pair(tensor_json("1"), tensor_json("1"), true, md5) == Lines{"pass"});
  CHECK(pair(hashed("\"aaaaaaaa\""), tensor_json("1"), false, md5) == Lines{"warning one"});
  CHECK(pair(hashed("\"aaaaaaaa\""), tensor_json("1"), true, md5) == Lines{"error crc"});
  // No partner at all.
  for (const bool python : {false, true}) {
    CHECK(pair(hashed("\"aaaaaaaa\""), "", python, md5) == Lines{"warning one"});
    CHECK(pair(hashed("\"aaaaaaaa\""), hashed("\"bbbbbbbb\""), python, md5, "Tensor.to.0.forward") ==
          Lines{"pass"});
    CHECK(pair(hashed("\"aaaaaaaa\""), hashed("\"bbbbbbbb\""), python, md5,
               "Distributed.all_to_all_single.0.forward") == Lines{"pass"});
  }
}

TEST_CASE("rules of graphs: null says nothing, surplus items differ; a section tells outputs") {
  const std::string full = tensor_json("1", "torch.float32", "[2]", R"(, "requires_grad": true)");
  const auto told_with = [&](const std::string& target, const std::string& golden, auto&& change,
                             std::string_view name = "Torch.a.0.forward") {
    RankResult result = matched(forward_json(name, target, tensor_json("9")),
                                forward_json(name, golden, tensor_json("1")), Mode::statistics, false);
    pair_first_inputs(result);
    change(result);
    result.judgement = judge(result, default_rules());
    return told(result).front();
  };
  const auto null_rule = [](RankResult& result) { result.python.null_says_nothing = true; };
  const auto unchanged = [](RankResult&) {};
  CHECK(told_with(full, "null", unchanged) == "error 4 6 7");
  CHECK(told_with(full, "null", null_rule) == "pass");
  CHECK(told_with(full, tensor_json("1", "torch.float32", "[2]"), null_rule) == "pass");
  CHECK(told_with(full, tensor_json("1", "torch.int8", "[3]"), null_rule) == "error 6 7");

  const auto surplus_rule = [](RankResult& result) {
    result.python.surplus_differs = true;
    result.python.unmatched_pass = true;
  };
  CHECK(told_with(full, "", unchanged) == "warning item");
  CHECK(told_with(full, "", surplus_rule) == "error 4 6 7");
  CHECK(told_with(scalar_json("int", "1"), "", surplus_rule) == "error 6 7");

  // The input of a module called `output` is no output.
  const std::string module = "Module.output.fc.Linear.forward.0";
  const std::string half = tensor_json("2", "torch.float32", "[2]", R"(, "requires_grad": true)");
  const auto name_rule = [](RankResult& result) { result.python.outputs_by_name = true; };
  CHECK(told_with(half, full, name_rule, module) == "error 3 8");
  CHECK(told_with(half, full, unchanged, module) == "pass");
}

TEST_CASE("rules of graphs: scalars are equal as values, checksums of null are values") {
  const auto numbers = [](const std::string& target, const std::string& golden) {
    RankResult result = matched(forward_json("Torch.a.0.forward", target, ""),
                                forward_json("Torch.a.0.forward", golden, ""), Mode::statistics, false);
    pair_first_inputs(result);
    result.python.numbers_only = true;
    result.judgement = judge(result, default_rules());
    return told(result);
  };
  CHECK(numbers(scalar_json("str", R"("sum")"), scalar_json("str", R"("sum")")) == Lines{"pass"});
  CHECK(numbers(scalar_json("str", R"("sum")"), scalar_json("str", R"("mean")")) == Lines{"error 5"});
  CHECK(numbers(scalar_json("int", "1"), scalar_json("float", "1.0")) == Lines{"error 6"});

  const std::string sum = tensor_json("1", "torch.float32", "[2]", R"(, "md5": "12345678")");
  for (const bool null_says_nothing : {false, true}) {
    RankResult result = matched(forward_json("Torch.a.0.forward", "null", ""),
                                forward_json("Torch.a.0.forward", sum, ""), Mode::md5, false);
    pair_first_inputs(result);
    result.python.null_says_nothing = null_says_nothing;
    result.python.tensors_without_checksum = true;
    result.judgement = judge(result, default_rules());
    CHECK(told(result) == Lines{null_says_nothing ? "error crc" : "warning one"});
  }
}

}  // namespace msprobe::compare_verdict_test
