// SPDX-License-Identifier: Apache-2.0
#include "measuring/measures.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "diagnosis/flow.hpp"
#include "pairing/operations.hpp"
#include "unit/diagnosis/dumps.hpp"

namespace msprobe::measuring::measures_test {

using namespace diagnosis;  // helpers of tests
namespace {

using dump::Nature;
using dump::Side;
using pairing::is_parameter_position;
using pairing::nature_of;
using testing::DumpText;
using testing::tensor;

/// One tensor with these statistics, as the output of an entry without inputs.
Side statistics(std::string_view largest, std::string_view least, std::string_view mean,
                std::string_view norm, std::string_view shape = "[4, 4]", std::string_view more = {}) {
  std::string text = R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": )" + std::string(shape);
  text += ", \"Max\": " + std::string(largest) + ", \"Min\": " + std::string(least);
  text += ", \"Mean\": " + std::string(mean) + ", \"Norm\": " + std::string(norm) + std::string(more) + "}";
  return DumpText().forward("Torch.f.0.forward", {}, {text}).side();
}

Measure between(const Side& target, const Side& golden) {
  return measure(target, target.items[0], golden, golden.items[0]);
}

}  // namespace

TEST_CASE("measures of tensors follow their definitions") {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> golden(1000);
  std::vector<float> target(1000);
  long double squares = 0;
  long double other_squares = 0;
  long double differences = 0;
  long double dot = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    golden[i] = normal(random);
    target[i] = 1.01F * golden[i] + 1e-3F * normal(random);
    const long double g = golden[i];
    const long double t = target[i];
    squares += g * g;
    other_squares += t * t;
    differences += (t - g) * (t - g);
    dot += t * g;
  }
  tensor::DifferenceAccumulator accumulator;
  accumulator.add(target, golden);
  const Measure found = measure(accumulator.finish());
  CHECK(found.known);
  CHECK(found.n == 1000);
  CHECK(found.e == doctest::Approx(static_cast<double>(std::sqrt(differences / squares))).epsilon(1e-12));
  CHECK(found.b == doctest::Approx(static_cast<double>((std::sqrt(other_squares) - std::sqrt(squares)) /
                                                       std::sqrt(squares)))
                       .epsilon(1e-9));
  CHECK(found.gain == doctest::Approx(static_cast<double>(dot / squares)).epsilon(1e-12));
}

TEST_CASE("tensors that are equal, not finite, or zero") {
  const auto of = [](const std::vector<float>& target, const std::vector<float>& golden) {
    tensor::DifferenceAccumulator accumulator;
    accumulator.add(target, golden);
    return measure(accumulator.finish());
  };
  CHECK(of({1, NAN, INFINITY}, {1, NAN, INFINITY}).e == 0);
  CHECK(of({1, NAN}, {1, 2}).e == kInfinite);
  CHECK(of({INFINITY}, {-INFINITY}).e == kInfinite);
  CHECK(of({1e-30F, 0}, {0, 0}).e == kInfinite);
  CHECK(of({0, 0}, {0, -0.0F}).e == 0);
}

TEST_CASE("measures of statistics") {
  // 16 elements and Norm 8: rms 2.
  const Side golden = statistics("4", "-1", "0.5", "8");
  CHECK(between(golden, golden).e == 0);
  CHECK(between(statistics("4", "-1", "0.5", "8.4"), golden).e == doctest::Approx(0.05));
  CHECK(between(statistics("4", "-1", "0.5", "8.4"), golden).b == doctest::Approx(0.05));
  CHECK(between(statistics("4", "-1", "0.6", "8"), golden).e == doctest::Approx(0.05));
  CHECK(between(statistics("4", "-1", "0.6", "8"), golden).b == 0);
  CHECK(between(statistics("4.4", "-1", "0.5", "8"), golden).e == doctest::Approx(0.1));
  // The least is smaller than rms, which then is the scale.
  CHECK(between(statistics("4", "-1.2", "0.5", "8"), golden).e == doctest::Approx(0.1));
  // Unknown on one side, or overflown while all elements are finite: nothing to compare.
  for (const char* unknown : {"NaN", "Infinity", "null"}) {
    CHECK(between(statistics("4", "-1", "0.5", unknown), golden).e == 0);
    CHECK(between(statistics("4", "-1", "0.5", unknown), golden).partial);
    CHECK(between(statistics("4.4", "-1", "0.5", unknown), golden).e == doctest::Approx(0.1));
  }
  CHECK(!between(golden, golden).partial);
  const Side nan = statistics("NaN", "NaN", "NaN", "NaN");
  CHECK(between(nan, nan).e == 0);
  const Side masked = statistics("4", "-Infinity", "-Infinity", "Infinity");
  CHECK(between(masked, masked).e == 0);
  CHECK(between(statistics("0.1", "0", "0", "0.1"), statistics("0", "0", "0", "0")).e == kInfinite);
  // Mean and Norm of whole numbers are not recorded.
  CHECK(between(statistics("10", "0", "null", "null"), statistics("8", "0", "null", "null")).e ==
        doctest::Approx(0.25));
  CHECK(
      between(statistics("true", "false", "null", "null"), statistics("false", "false", "null", "null")).e ==
      kInfinite);
}

TEST_CASE("of equal elements the extremes tell all") {
  // Recorded by two tools: one sums 768 equal numbers in double, the other in float32.
  const char* const element = "0.0006451294757425785";
  const Side exact = statistics(element, element, element, "0.017878351733088493", "[3, 1, 16, 16]");
  const Side summed =
      statistics(element, element, "0.0006451294175349176", "0.017878256738185883", "[3, 1, 16, 16]");
  CHECK(between(summed, exact).known);
  CHECK(between(summed, exact).e == 0);
  CHECK(between(summed, exact).b == 0);
  const Side larger = statistics("2", "2", "2", "8");
  const Side smaller = statistics("1", "1", "1", "4");
  CHECK(between(larger, smaller).e == doctest::Approx(1));
  CHECK(between(larger, smaller).b == doctest::Approx(1));
  const Side negative = statistics("-1", "-1", "-1", "4");
  CHECK(between(negative, smaller).e == 2);
  CHECK(between(negative, smaller).b == 0);
}

TEST_CASE("checksums tell equal from different, and no more") {
  const auto with = [](std::string_view sum, std::string_view norm) {
    return statistics("null", "null", "null", norm, "[2]", R"(, "md5": ")" + std::string(sum) + '"');
  };
  CHECK(between(with("aaaaaaaa", "null"), with("aaaaaaaa", "null")).e == 0);
  const Measure other = between(with("aaaaaaaa", "null"), with("bbbbbbbb", "null"));
  CHECK(other.known);
  CHECK(std::isnan(other.e));
  CHECK(between(with("aaaaaaaa", "2"), with("bbbbbbbb", "1")).e == doctest::Approx(1));
  const Side nothing = statistics("null", "null", "null", "null");
  CHECK_FALSE(between(nothing, nothing).known);
}

TEST_CASE("unit roundoff by any name") {
  for (const char* name : {"torch.float32", "float32", "Float32", "torch.float"})
    CHECK(unit_roundoff(name) == 0x1p-24);
  for (const char* name : {"torch.bfloat16", "bfloat16", "BFloat16"}) CHECK(unit_roundoff(name) == 0x1p-8);
  for (const char* name : {"torch.float16", "torch.half", "Float16"}) CHECK(unit_roundoff(name) == 0x1p-11);
  CHECK(unit_roundoff("torch.float64") == 0x1p-53);
  CHECK(unit_roundoff("torch.float8_e4m3fn") == 0x1p-4);
  for (const char* name : {"torch.int64", "torch.bool", "None", "<class 'float'>"})
    CHECK(unit_roundoff(name) == 0);
  CHECK(same_dtype("torch.float32", "Float32"));
  CHECK_FALSE(same_dtype("torch.float32", "torch.float16"));
  CHECK(same_dtype("custom", "custom"));
}

TEST_CASE("elements of a shape") {
  CHECK(elements_of("[2, 3]") == 6);
  CHECK(elements_of("[]") == 1);
  CHECK(elements_of("[0, 3]") == 0);
  CHECK(elements_of("[4294967296, 4294967296, 2]") == UINT64_MAX);
  CHECK(elements_of("rubbish") == 1);
  CHECK(elements_of("[18446744073709551617, 2]") == 1);  // no size of anything
  CHECK(elements_of("[-2, 3]") == 1);
  CHECK(sizes_of("[2, x]").empty());
  CHECK(sizes_of("[7, 8]") == std::vector<std::uint64_t>{7, 8});
}

TEST_CASE("a content is known again whatever its shape") {
  const Side whole = DumpText().forward("Torch.f.0.forward", {}, {tensor(1, "[2, 32]")}).side();
  const Side flat = DumpText().forward("Torch.f.0.forward", {}, {tensor(1, "[64]")}).side();
  const Side other = DumpText().forward("Torch.f.0.forward", {}, {tensor(1.0000001, "[64]")}).side();
  const std::uint64_t key = content_key(whole, whole.items[0]);
  CHECK(key != 0);
  CHECK(key == content_key(flat, flat.items[0]));
  CHECK(key != content_key(other, other.items[0]));
  const Side zeros = statistics("0", "0", "0", "0");
  CHECK(content_key(zeros, zeros.items[0]) == 0);
}

TEST_CASE("a map of contents keeps the last of each") {
  ContentMap map;
  CHECK(map.find(5) == ContentMap::kUnknown);
  for (std::uint32_t i = 1; i <= 5000; ++i) map.put(std::uint64_t{i} * 0x100000001ULL, i);
  map.put(0x100000001ULL, 9);
  map.put(0, 7);
  CHECK(map.size() == 5000);
  CHECK(map.find(0x100000001ULL) == 9);
  CHECK(map.find(std::uint64_t{4999} * 0x100000001ULL) == 4999);
  CHECK(map.find(0) == ContentMap::kUnknown);
}

TEST_CASE("the nature of an operation is in its name") {
  CHECK(nature_of("__truediv__") == Nature::division);
  CHECK(nature_of("div_") == Nature::division);
  CHECK(nature_of("Dropout") == Nature::random);
  CHECK(nature_of("__iadd__") == Nature::sum);
  CHECK(nature_of("topk") == Nature::discrete);
  CHECK(nature_of("linear") == Nature::ordinary);
  CHECK(is_parameter_position("linear", 1));
  CHECK_FALSE(is_parameter_position("linear", 0));
  CHECK(is_parameter_position("layer_norm", 3));
  CHECK_FALSE(is_parameter_position("matmul", 1));
}

}  // namespace msprobe::measuring::measures_test
