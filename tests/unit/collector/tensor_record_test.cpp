// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_record.hpp"

#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collector/step.hpp"
#include "support/error.hpp"

namespace msprobe::collector_tensor_record_test {

using namespace msprobe;
using namespace msprobe::collector;

namespace {

RecordRules rules_of(SummaryMode summary, bool compatible, bool high = false) {
  RecordRules rules;
  rules.summary = summary;
  rules.numbers.python_compatible = compatible;
  rules.numbers.high_precision = high;
  return rules;
}

template <typename T>
msprobe_tensor tensor_of(msprobe_dtype dtype, const std::vector<T>& values,
                         const std::vector<std::int64_t>& shape) {
  msprobe_tensor tensor = {};
  tensor.struct_size = sizeof tensor;
  tensor.data = values.data();
  tensor.shape = shape.data();
  tensor.ndim = static_cast<std::uint32_t>(shape.size());
  tensor.dtype = dtype;
  return tensor;
}

TensorView view_of_row_major(const msprobe_tensor& tensor) {
  TensorView view;
  view.data = static_cast<const std::byte*>(tensor.data);
  view.dtype = static_cast<tensor::DType>(tensor.dtype);
  view.rank = tensor.ndim;
  view.count = 1;
  for (std::size_t axis = view.rank; axis-- > 0;) {
    view.shape[axis] = tensor.shape[axis];
    view.strides[axis] = static_cast<std::int64_t>(view.count);
    view.count *= static_cast<std::uint64_t>(tensor.shape[axis]);
  }
  return view;
}

/// The record on one line, from behind its shape on.
std::string record(const RecordRules& rules, const msprobe_tensor& tensor) {
  std::string text;
  RecordedTensor made;
  append_record(text, rules, tensor, view_of_row_major(tensor), {}, made);
  std::string line;
  for (const char c : text) {
    if (c != '\n' && c != ' ') line += c;
  }
  const std::size_t shape_end = line.find(']');
  REQUIRE(shape_end != std::string::npos);
  return line.substr(shape_end + 1);
}

template <typename T>
std::string numbers(msprobe_dtype dtype, const std::vector<T>& values, bool compatible, bool high = false,
                    const char* type = nullptr) {
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(values.size())};
  msprobe_tensor tensor = tensor_of(dtype, values, shape);
  tensor.type = type;
  return record(rules_of(SummaryMode::statistics, compatible, high), tensor);
}

std::string four(const std::string& max, const std::string& min, const std::string& mean,
                 const std::string& norm, const std::string& count = {}) {
  return R"(,"Max":)" + max + R"(,"Min":)" + min + R"(,"Mean":)" + mean + R"(,"Norm":)" + norm + count + "}";
}

}  // namespace

TEST_CASE("numbers of each kind of type, as the Python tool has them and as we do") {
  const std::vector<float> f32 = {1, -2, 3.5F};
  const std::string known = four("3.5", "-2.0", "0.8333333134651184", "4.153311729431152");
  CHECK(numbers(MSPROBE_FLOAT32, f32, true) == known);
  CHECK(numbers(MSPROBE_FLOAT32, f32, false) == known);
  CHECK(numbers(MSPROBE_FLOAT32, f32, true, true) == four("3.5", "-2.0", "null", "null"));
  CHECK(numbers(MSPROBE_FLOAT32, f32, false, true) ==
        four("3.5", "-2.0", "0.8333333333333334", "4.153311931459037"));

  const std::vector<std::uint16_t> half = {0x3c00, 0x4000};
  CHECK(numbers(MSPROBE_FLOAT16, half, true) == four("2.0", "1.0", "1.5", "2.236328125"));
  CHECK(numbers(MSPROBE_FLOAT16, half, false) == four("2.0", "1.0", "1.5", "2.2360680103302"));
  const std::vector<std::uint16_t> brain = {0x3f80, 0x4000};
  CHECK(numbers(MSPROBE_BFLOAT16, brain, true) == four("2.0", "1.0", "1.5", "2.234375"));
  // The largest half, a thousand times: finite in float32, not in half precision.
  const std::vector<std::uint16_t> large(1000, 0x7bff);
  CHECK(numbers(MSPROBE_FLOAT16, large, true) == four("65504.0", "65504.0", "65504.0", "Infinity"));
  CHECK(numbers(MSPROBE_FLOAT16, large, false) == four("65504.0", "65504.0", "65504.0", "2071418.375"));

  // The smallest float, twice: as the Python tool has a mask, and as it is.
  const float smallest = std::numeric_limits<float>::lowest();
  const std::string text = "-3.4028234663852886e+38";
  CHECK(numbers<float>(MSPROBE_FLOAT32, {0, smallest, smallest, 0}, true) ==
        four("0.0", text, "-Infinity", "Infinity"));
  CHECK(numbers<float>(MSPROBE_FLOAT32, {0, smallest}, true) ==
        four("0.0", text, "-1.7014117331926443e+38", "Infinity"));
  CHECK(numbers<float>(MSPROBE_FLOAT32, {0, smallest, smallest, 0}, false) ==
        four("0.0", text, "-1.7014117331926443e+38", "Infinity"));
  const std::vector<std::uint16_t> brain_mask = {0, 0xff7f, 0xff7f};
  CHECK(numbers(MSPROBE_BFLOAT16, brain_mask, true) ==
        four("0.0", "-3.3895313892515355e+38", "-Infinity", "Infinity"));

  CHECK(numbers<std::int8_t>(MSPROBE_INT8, {1, 2, 3}, true) == four("3", "1", "null", "null"));
  CHECK(numbers<std::int8_t>(MSPROBE_INT8, {1, 2, 3}, false) == four("3", "1", "2.0", "3.7416573867739413"));
  CHECK(numbers<std::int64_t>(MSPROBE_INT64, {9007199254740993, 0}, true) ==
        four("9007199254740993", "0", "null", "null"));
  CHECK(numbers<std::uint64_t>(MSPROBE_UINT64, {UINT64_MAX, 0}, false)
            .starts_with(R"(,"Max":18446744073709551615,)"));
  CHECK(numbers<double>(MSPROBE_FLOAT64, {1.5, 0.25}, true) == four("1.5", "0.25", "null", "null"));
  CHECK(numbers<double>(MSPROBE_FLOAT64, {3, 4}, false) == four("4.0", "3.0", "3.5", "5.0"));
  CHECK(numbers<std::uint8_t>(MSPROBE_BOOL, {1, 0, 1}, true) == four("true", "false", "null", "null"));
  CHECK(numbers<std::uint8_t>(MSPROBE_BOOL, {1, 0, 1}, false) ==
        four("true", "false", "null", "null", R"(,"True_count":2)"));
  CHECK(numbers<std::uint8_t>(MSPROBE_FLOAT8_E5M2, {0x3c, 0x40}, true) ==
        four("null", "null", "null", "null"));
  CHECK(numbers<std::uint8_t>(MSPROBE_FLOAT8_E5M2, {0x3c, 0x40}, false) ==
        four("2.0", "1.0", "1.5", "2.2360680103302"));
  const std::vector<std::complex<float>> complex = {{1, 1}, {2, 2}};
  for (const bool compatible : {true, false}) {
    CHECK(numbers(MSPROBE_COMPLEX64, complex, compatible) ==
          four("2.8284270763397217", "1.4142135381698608", "2.1213202476501465", "null"));
  }
  CHECK(numbers<float>(MSPROBE_FLOAT32, {}, false) == four("null", "null", "null", "null"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(numbers<float>(MSPROBE_FLOAT32, {1, nan}, false) == four("NaN", "NaN", "NaN", "NaN"));
  CHECK(numbers<float>(MSPROBE_FLOAT32, {1, -HUGE_VALF}, false) ==
        four("1.0", "-Infinity", "-Infinity", "Infinity", R"(,"Neg_inf_count":1)"));
  CHECK(numbers<float>(MSPROBE_FLOAT32, {1, -HUGE_VALF}, true) ==
        four("1.0", "-Infinity", "-Infinity", "Infinity"));
  CHECK(numbers<float>(MSPROBE_FLOAT32, {1, HUGE_VALF}, false) ==
        four("Infinity", "1.0", "Infinity", "Infinity"));
  CHECK(numbers<std::int64_t>(MSPROBE_INT64, {1, 2}, true, false, "numpy.ndarray") ==
        four("2", "1", "1.5", "2.23606797749979"));
}

TEST_CASE("no axis: the value four times") {
  const auto scalar = [](msprobe_dtype dtype, const auto& values) {
    return record(rules_of(SummaryMode::statistics, false), tensor_of(dtype, values, {}));
  };
  CHECK(scalar(MSPROBE_FLOAT32, std::vector<float>{-2}) == four("-2.0", "-2.0", "-2.0", "-2.0"));
  CHECK(scalar(MSPROBE_INT64, std::vector<std::int64_t>{-7}) == four("-7", "-7", "-7", "-7"));
  CHECK(scalar(MSPROBE_BOOL, std::vector<std::uint8_t>{1}) ==
        four("true", "true", "null", "null", R"(,"True_count":1)"));
}

TEST_CASE("checksums in the place of numbers, or after them") {
  const std::vector<float> f32 = {1, -2, 3.5F};
  const std::vector<std::int64_t> shape = {3};
  msprobe_tensor tensor = tensor_of(MSPROBE_FLOAT32, f32, shape);
  tensor.flags = MSPROBE_TENSOR_HAS_REQUIRES_GRAD | MSPROBE_TENSOR_REQUIRES_GRAD;
  tensor.extra = R"({"device_mesh": [0, 1], "placements": [{"Shard": {"dim": 0}}]})";
  const std::string extra = R"("device_mesh":[0,1],"placements":[{"Shard":{"dim":0}}])";
  CHECK(record(rules_of(SummaryMode::xor_, false), tensor) ==
        R"(,"md5":"0xc00000007fe00000","requires_grad":true,)" + extra + "}");
  CHECK(record(rules_of(SummaryMode::md5, false), tensor) ==
        R"(,"Max":3.5,"Min":-2.0,"Mean":0.8333333134651184,"Norm":4.153311729431152,"requires_grad":true,)" +
            extra + R"(,"md5":"966c0281"})");
  tensor.data = nullptr;
  CHECK(record(rules_of(SummaryMode::md5, false), tensor).ends_with(R"("md5":null})"));
  CHECK(record(rules_of(SummaryMode::xor_, false), tensor).starts_with(R"(,"md5":null)"));
  const std::vector<float> one = {1.5F};
  const msprobe_tensor scalar = tensor_of(MSPROBE_FLOAT32, one, {});
  CHECK(record(rules_of(SummaryMode::xor_, false), scalar) == R"(,"md5":"0x000000003fc00000"})");
  CHECK(record(rules_of(SummaryMode::xor_, true), scalar) == R"(,"md5":1.5})");
  tensor.extra = "[1]";
  std::string text;
  RecordedTensor made;
  CHECK_THROWS_AS(
      append_record(text, rules_of(SummaryMode::md5, false), tensor, view_of_row_major(tensor), {}, made),
      FormatError);
}

TEST_CASE("a crop follows Python's slices") {
  std::vector<float> values(12);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::vector<std::int64_t> shape = {3, 4};
  const msprobe_tensor tensor = tensor_of(MSPROBE_FLOAT32, values, shape);
  const auto cropped = [&](const std::vector<SliceRule>& rules) {
    TensorView view = view_of_row_major(tensor);
    crop(view, rules);
    std::string text = std::to_string(view.shape[0]) + "x" + std::to_string(view.shape[1]);
    if (view.count > 0) text += " from " + std::to_string(static_cast<int>(measure(view).min));
    return text +
           (view.count == static_cast<std::uint64_t>(view.shape[0] * view.shape[1]) ? "" : " miscounted");
  };
  CHECK(cropped({{1, std::nullopt, 1, 3}}) == "3x2 from 1");
  CHECK(cropped({{0, std::nullopt, -1, std::nullopt}}) == "1x4 from 8");
  CHECK(cropped({{0, 3, 1, -1}, {1, 4, 2, std::nullopt}}) == "1x2 from 6");
  CHECK(cropped({{0, 4, 1, -1}, {7, std::nullopt, 1, 2}}) == "3x4 from 0");
  CHECK(cropped({{1, std::nullopt, 3, 1}}) == "3x0");
  CHECK(cropped({{1, std::nullopt, -100, 100}}) == "3x4 from 0");
  CHECK(cropped({{0, std::nullopt, 5, 9}, {0, std::nullopt, 0, 1}}) == "0x4");
}

}  // namespace msprobe::collector_tensor_record_test
