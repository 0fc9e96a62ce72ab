// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dump/member_stream.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "precheck/calls/operator_policy.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::precheck_request_test {

using namespace msprobe::precheck;
using namespace msprobe;
using nlohmann::json;

namespace {

json golden_cases() {
  std::ifstream file(test::in_source("tests/data/golden/prechecks/random_data/cases.json"));
  REQUIRE(file.good());
  std::string text((std::istreambuf_iterator<char>(file)), {});
  // Python writes what JSON has no words for.
  for (const auto& [bare, quoted] : std::vector<std::pair<std::string, std::string>>{
           {": NaN", ": \"NaN\""}, {": -Infinity", ": \"-Infinity\""}, {": Infinity", ": \"Infinity\""}}) {
    for (std::size_t at = text.find(bare); at != std::string::npos; at = text.find(bare, at))
      text.replace(at, bare.size(), quoted);
  }
  return json::parse(text);
}

/// The entry as in a dump.json.
dump::Entry entry_of(const json& entry) {
  std::string text = entry.dump();
  for (const std::string word : {"NaN", "-Infinity", "Infinity"}) {
    const std::string quoted = '"' + word + '"';
    for (std::size_t at = text.find(quoted); at != std::string::npos; at = text.find(quoted, at))
      text.replace(at, quoted.size(), word);
  }
  return dump::read_json(text, "entry");
}

PlannedCall call_of(const std::string& api, const std::string& type = "Torch") {
  PlannedCall call;
  call.api = {type, api, "0"};
  call.name = call.api.text();
  return call;
}

std::string hex_of(const SharedFile& file, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  REQUIRE(file.read_at(offset, bytes));
  std::string hex;
  for (const std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[std::to_integer<int>(byte >> 4)];
    hex += kDigits[std::to_integer<int>(byte & std::byte{15})];
  }
  return hex;
}

/// One rebuilt argument as the golden file tells it.
void check_argument(const json& made, const json& expected, const SharedFile& file) {
  if (expected.is_array()) {
    REQUIRE(made.contains("list"));
    REQUIRE(made["list"].size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) check_argument(made["list"][i], expected[i], file);
  } else if (expected.is_object() && expected.contains("tensor")) {
    REQUIRE(made.contains("tensor"));
    const json& tensor = made["tensor"];
    CHECK(tensor[1] == expected["shape"]);
    if (expected.contains("note")) return;
    CHECK(tensor[4] == expected["requires_grad"]);
    const std::string bytes = expected["bytes_le"];
    if (expected["tensor"] == "bool") {
      std::string hex;
      for (const std::string value : expected["values"]) hex += value == "True" ? "01" : "00";
      CHECK(hex_of(file, tensor[2], hex.size() / 2) == hex);
    } else if (tensor[0] == expected["tensor"]) {
      CHECK(hex_of(file, tensor[2], bytes.size() / 2) == bytes);
    } else {
      // Made as int32 and handed on as int64.
      CHECK(tensor[3] == expected["tensor"]);
      std::size_t at = 0;
      for (const std::string value : expected["values"]) {
        std::int32_t number = 0;
        REQUIRE(file.read_at(tensor[2].get<std::uint64_t>() + 4 * at++,
                             std::as_writable_bytes(std::span(&number, 1))));
        CHECK(std::to_string(number) == value);
      }
    }
  } else if (expected.is_string()) {
    const std::string text = expected;
    const std::string value = text.substr(text.find(": ") + 2);
    if (text.starts_with("NoneType")) {
      CHECK(made.is_null());
    } else if (text.starts_with("int: ") || text.starts_with("bool: ") || text.starts_with("float: ")) {
      CHECK((made["plain"].is_boolean() ? (made["plain"].get<bool>() ? "True" : "False")
                                        : made["plain"].dump()) == value);
    } else if (text.starts_with("str: ")) {
      CHECK(python_repr(made["plain"].get<std::string>()) == value);
    }
  }
}

/// How many elements of the arguments are NaN or Inf.
std::size_t non_finite(const CallRequest& request, const SharedFile& file) {
  const RequestTensor& tensor = request.tensors.at(0);
  std::vector<std::byte> bytes(tensor.size);
  REQUIRE(file.read_at(tensor.offset, bytes));
  std::vector<double> values(tensor.shape.at(0));
  tensor::to_double(tensor.dtype, bytes, values);
  return std::ranges::count_if(values, [](double value) { return !std::isfinite(value); });
}

/// One element for each of Max and Min that is not finite; NaN is both.
std::size_t non_finite_bounds(const json& entry) {
  const json& tensor = entry["input_args"][0];
  const std::size_t count = tensor["Max"].is_string() + tensor["Min"].is_string();
  return count == 2 && tensor["Max"] == "NaN" ? 1 : count;
}

}  // namespace

TEST_CASE("arguments without tensors are those of the Python tool, bit for bit") {
  // Items of docs/differences/prechecks.md.
  const std::map<std::string, std::string> differences = {
      {"all_inf", "P23"},
      {"both_inf", "P23"},
      {"except_all_inf", "P23"},
      {"except_inf_nan", "P23"},
      {"except_nan", "P23"},
      {"except_nan_two", "P23"},
      {"f16_inf", "P23"},
      {"max_inf", "P23"},
      {"max_nan", "P23"},
      {"max_nan_min_number", "P23"},
      {"min_minus_inf", "P23"},
      {"complex_numbers", "P24"},
      {"list_value_of_numbers", "P68"},
  };
  std::size_t tensors = 0;
  const json golden = golden_cases();
  for (const auto& [name, one] : golden.items()) {
    CAPTURE(name);
    RequestOptions options;
    options.hf32 = true;
    options.seed = 1234;  // the Python tool's
    RequestBuilder builder(nullptr, options);
    SharedFile file;
    const dump::Entry entry = entry_of(one["entry"]);
    if (differences.contains(name)) {
      const CallRequest made = builder.build(1, call_of(one["api"]), entry, nullptr, file);
      if (differences.at(name) == "P23") CHECK(non_finite(made, file) == non_finite_bounds(one["entry"]));
      continue;
    }
    if (one.contains("raises")) {
      CHECK_THROWS_AS(builder.build(1, call_of(one["api"]), entry, nullptr, file), NotRebuilt);
      continue;
    }
    const json made = json::parse(builder.build(1, call_of(one["api"]), entry, nullptr, file).json);
    REQUIRE(made["args"].size() == one["args"].size());
    for (std::size_t i = 0; i < one["args"].size(); ++i)
      check_argument(made["args"][i], one["args"][i], file);
    for (const auto& [key, value] : one["kwargs"].items()) {
      CAPTURE(key);
      REQUIRE(made["kwargs"].contains(key));
      check_argument(made["kwargs"][key], value, file);
    }
    tensors += made["args"].size();
  }
  CHECK(golden.size() == 49);
  CHECK(tensors > 40);
}

namespace {

std::string tensor_entry(const std::string& dtype, const std::string& shape, const std::string& min,
                         const std::string& max) {
  return R"({"type": "torch.Tensor", "dtype": "torch.)" + dtype + R"(", "shape": )" + shape + R"(, "Min": )" +
         min + R"(, "Max": )" + max + R"(, "requires_grad": false})";
}

std::vector<float> made_floats(const std::string& name, const std::string& min, const std::string& max) {
  const dump::Entry entry = dump::read_json(
      R"({"input_args": [)" + tensor_entry("float32", "[1000]", min, max) + R"(], "input_kwargs": {}})",
      "entry");
  PlannedCall call = call_of("exp");
  call.name = name;
  RequestBuilder builder(nullptr, {});
  SharedFile file;
  builder.build(1, call, entry, nullptr, file);
  std::vector<float> values(1000);
  REQUIRE(file.read_at(0, std::as_writable_bytes(std::span(values))));
  return values;
}

}  // namespace

TEST_CASE("one infinite element of a record becomes one such element") {
  const std::vector<float> values = made_floats("Torch.exp.0", "-2.0", "Infinity");
  CHECK(std::count_if(values.begin(), values.end(), [](float v) { return std::isinf(v) && v > 0; }) == 1);
  CHECK(std::count_if(values.begin(), values.end(),
                      [](float v) { return std::isfinite(v) && v >= -2 && v <= 2; }) == 999);
  const std::vector<float> undefined = made_floats("Torch.exp.0", "NaN", "NaN");
  CHECK(std::count_if(undefined.begin(), undefined.end(), [](float v) { return std::isnan(v); }) == 1);
  CHECK(std::count_if(undefined.begin(), undefined.end(), [](float v) { return v >= -1 && v <= 1; }) == 999);
}

TEST_CASE("random data depends on the call and on nothing before it") {
  CHECK(made_floats("Torch.exp.0", "0.0", "1.0") == made_floats("Torch.exp.0", "0.0", "1.0"));
  CHECK(made_floats("Torch.exp.0", "0.0", "1.0") != made_floats("Torch.exp.1", "0.0", "1.0"));
}

TEST_CASE("the reference is raised as far as the types of the inputs ask for") {
  const auto raised = [](const std::string& arguments) {
    const dump::Entry entry =
        dump::read_json(R"({"input_args": [)" + arguments + R"(], "input_kwargs": {}})", "entry");
    RequestBuilder builder(nullptr, {});
    SharedFile file;
    return json::parse(builder.build(1, call_of("add"), entry, nullptr, file).json)["raise"];
  };
  const std::string half = tensor_entry("float16", "[2]", "0.0", "1.0");
  const std::string single = tensor_entry("float32", "[2]", "0.0", "1.0");
  CHECK(raised(single) == json{{"float32", "float64"}});
  CHECK(raised(half) == json{{"float16", "float32"}});
  CHECK(raised(half + "," + single) == json{{"float16", "float64"}, {"float32", "float64"}});
}

TEST_CASE("an argument that cannot be made again is refused with its place") {
  const auto reason = [](const std::string& api, const std::string& arguments,
                         const std::string& keywords = "{}") {
    const dump::Entry entry =
        dump::read_json(R"({"input_args": )" + arguments + R"(, "input_kwargs": )" + keywords + "}", "entry");
    RequestBuilder builder(nullptr, {});
    SharedFile file;
    try {
      builder.build(1, call_of(api), entry, nullptr, file);
    } catch (const NotRebuilt& refused) {
      return std::string(refused.what());
    }
    return std::string();
  };
  CHECK(reason("add", "[{}]") == "argument 0 was not recorded");
  CHECK(reason("add", R"([{"type": "torch.Generator"}])") ==
        "argument 0 is a torch.Generator, which cannot be recreated");
  CHECK(reason("add", "[" + tensor_entry("float32", "[100000, 100000, 100000]", "0.0", "1.0") + "]") ==
        "argument 0 makes the arguments larger than 17.2 GB");
  CHECK(reason("add",
               "[" + tensor_entry("float32", "[9223372036854775807, 9223372036854775807]", "0.0", "1.0") +
                   "]") == "argument 0 makes the arguments larger than 17.2 GB");
  CHECK(reason("add", "[" + tensor_entry("float32", "[-1]", "0.0", "1.0") + "]") ==
        "argument 0 has a malformed shape");
  CHECK(reason("add", "[]", R"({"dtype": {"type": "torch.dtype", "value": "os.system"}})") ==
        "argument 'dtype' is 'os.system', which is not an element type");
  const std::string x = tensor_entry("float32", "[2]", "0.0", "1.0");
  CHECK(reason("dropout", "[" + x + "]") == "its result is random");
  CHECK(reason("dropout", "[" + x + "]", R"({"p": {"type": "float", "value": 0.5}})") ==
        "its result is random");
  CHECK(reason("dropout", "[" + x + "]", R"({"p": {"type": "float", "value": 0.0}})").empty());
  CHECK(reason("dropout", "[" + x + "]", R"({"training": {"type": "bool", "value": false}})").empty());
  CHECK(reason("scaled_dot_product_attention", "[" + x + "," + x + "," + x + "]").empty());
}

TEST_CASE("the probability is the argument that the signature calls so") {
  CHECK(probability_position({"Functional", "dropout", "0"}) == 1);
  CHECK(probability_position({"Mint", "dropout_", "0"}) == 1);
  CHECK(probability_position({"Functional", "scaled_dot_product_attention", "0"}) == 4);
  CHECK(probability_position({"Functional", "multi_head_attention_forward", "0"}) == 10);
  CHECK(probability_position({"Tensor", "norm", "0"}) == std::nullopt);
  CHECK(probability_position({"Functional", "lp_pool2d", "0"}) == std::nullopt);
  for (const char* name : {"randn", "uniform_", "rrelu_", "multinomial", "native_dropout"})
    CHECK(is_always_random({"Torch", name, "0"}));
  for (const char* name : {"dropout", "layer_norm", "empty", "nobody_knows_it"})
    CHECK_FALSE(is_always_random({"Torch", name, "0"}));
}

}  // namespace msprobe::precheck_request_test
