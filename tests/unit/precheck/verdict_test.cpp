// SPDX-License-Identifier: Apache-2.0
// Our verdict: against what an element-wise bound says, for results of known faults.
#include "precheck/judgement/verdict.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "precheck/judgement/kernels.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/judgement/pairwise_sum.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck::verdict_test {
namespace {

using tensor::DType;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Tensors over bytes that it owns.
class Values {
 public:
  template <typename T>
  CallOutput tensor(DType dtype, const std::vector<T>& values, std::vector<std::uint64_t> shape = {}) {
    std::vector<std::byte>& bytes = bytes_.emplace_back(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    TensorOutput tensor{dtype, std::move(shape), bytes};
    if (tensor.shape.empty()) tensor.shape = {bytes.size() / tensor::info(dtype).size};
    return {tensor};
  }
  CallOutput doubles(const std::vector<double>& values) { return tensor(DType::float64, values); }
  CallOutput floats(const std::vector<double>& values) {
    return tensor(DType::float32, std::vector<float>(values.begin(), values.end()));
  }
  /// Rounded to the nearest bfloat16.
  CallOutput bfloats(const std::vector<double>& values) {
    std::vector<std::uint16_t> bits;
    for (const double value : values) {
      const auto single = static_cast<float>(value);
      std::uint32_t word = 0;
      std::memcpy(&word, &single, sizeof word);
      bits.push_back(static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16));
    }
    return tensor(DType::bfloat16, bits);
  }

 private:
  std::deque<std::vector<std::byte>> bytes_;
};

CallJudgement judged(const CallOutput& reference, const CallOutput& device, const InputFacts& inputs = {},
                     const std::string& operation = "mul") {
  static const Standards standards = Standards::built_in();
  return judge({"Torch", operation, "0"}, CallDirection::forward, reference, device, standards,
               Selection::release_26, inputs);
}

std::vector<double> normal_numbers(std::size_t count, double scale = 1) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> distribution(0, scale);
  std::vector<double> values(count);
  for (double& value : values) value = distribution(engine);
  return values;
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

TEST_CASE("Correct rounding passes, whatever the Python tool says of it") {
  Values values;
  const std::vector<double> numbers = normal_numbers(1000, 100);
  const CallJudgement bfloat16 = judged(values.doubles(numbers), values.bfloats(numbers));
  CHECK(bfloat16.verdict == PrecheckVerdict::pass);
  CHECK(bfloat16.reason.empty());
  CHECK(bfloat16.status == PythonStatus::warning);
  CHECK(judged(values.doubles(numbers), values.floats(numbers)).verdict == PrecheckVerdict::pass);
}

TEST_CASE("NaN and infinities that are equal are equal, others are errors that name their place") {
  Values values;
  const std::vector<double> nonfinite = {1, kNaN, kInfinity, -kInfinity};
  const CallJudgement same = judged(values.doubles(nonfinite), values.floats(nonfinite));
  CHECK(same.verdict == PrecheckVerdict::pass);
  CHECK(same.status == PythonStatus::error);  // the Python tool's
  for (const auto& [device, place] : std::vector<std::pair<std::vector<double>, std::string>>{
           {{kNaN, kNaN, kInfinity, -kInfinity}, "[0]: nan instead of 1"},
           {{1, 2, kInfinity, -kInfinity}, "[1]: 2 instead of nan"},
           {{1, kNaN, -kInfinity, -kInfinity}, "[2]: -inf instead of inf"},
           {{1, kNaN, kInfinity, 3e38}, "[3]: 3e+38 instead of -inf"}}) {
    const CallJudgement other = judged(values.doubles(nonfinite), values.floats(device));
    CHECK(other.verdict == PrecheckVerdict::error);
    CHECK_MESSAGE(other.reason.find("1 of 4 elements are NaN or infinite on one side") != std::string::npos,
                  other.reason);
    CHECK_MESSAGE(other.reason.ends_with(place), other.reason);
  }
}

TEST_CASE("A value that overflows in the device's type is not an error of the device") {
  Values values;
  CHECK(judged(values.doubles({1e39, 1, -1e300}), values.floats({kInfinity, 1, -kInfinity})).verdict ==
        PrecheckVerdict::pass);
  CHECK(judged(values.doubles({1e39, 1}), values.floats({-kInfinity, 1})).verdict == PrecheckVerdict::error);
  // 65519.99 rounds to 65504, 65520 to infinity.
  const CallOutput half = values.tensor(DType::float16, std::vector<std::uint16_t>{0x7bff, 0x7c00});
  CHECK(judged(values.doubles({65519.99, 65520}), half).verdict == PrecheckVerdict::pass);
  CHECK(judged(values.doubles({65519.99, 65000}), half).verdict == PrecheckVerdict::error);
}

TEST_CASE("Faults of a kernel are errors at their place") {
  Values values;
  const std::vector<double> numbers = normal_numbers(4096);
  const CallOutput reference = values.tensor(DType::float64, numbers, {64, 64});
  const auto device = [&](std::vector<double> all) {
    return values.tensor(DType::float32, std::vector<float>(all.begin(), all.end()), {64, 64});
  };
  CHECK(judged(reference, device(numbers)).verdict == PrecheckVerdict::pass);

  std::vector<double> tile = numbers;
  for (std::size_t row = 16; row < 24; ++row) {
    for (std::size_t column = 8; column < 16; ++column) tile[row * 64 + column] = 0;
  }
  const CallJudgement zeroed = judged(reference, device(tile));
  CHECK(zeroed.verdict == PrecheckVerdict::error);
  CHECK(zeroed.reason.find("units in the last place of float32") != std::string::npos);

  std::vector<double> half = numbers;
  for (double& value : half)
    value = std::ldexp(std::nearbyint(std::ldexp(value, 8 - std::ilogb(value))), std::ilogb(value) - 8);
  CHECK(judged(reference, device(half)).verdict == PrecheckVerdict::error);

  CHECK(judged(reference, device(scaled(numbers, 1.01))).verdict == PrecheckVerdict::error);
  // Sums in another order: some units at the size of the largest.
  CHECK(judged(reference, device(scaled(numbers, 1 + 20 * 0x1p-24))).verdict == PrecheckVerdict::pass);
  CHECK(judged(reference, device(scaled(numbers, 1 + 300 * 0x1p-24))).verdict == PrecheckVerdict::warning);

  std::vector<double> one = numbers;
  one[130] += 10;
  const CallJudgement single = judged(reference, device(one));
  CHECK(single.verdict == PrecheckVerdict::error);
  CHECK_MESSAGE(single.reason.starts_with("[2, 2] is off by "), single.reason);
}

TEST_CASE("Small elements beside large ones have to be right, too, if they are many") {
  Values values;
  std::vector<double> numbers(1000, 1e-9);
  numbers[0] = 1;
  std::vector<double> zeroed = numbers;
  CHECK(judged(values.doubles(numbers), values.floats(zeroed)).verdict == PrecheckVerdict::pass);
  for (std::size_t i = 100; i < 105; ++i) zeroed[i] = 0;
  CHECK(judged(values.doubles(numbers), values.floats(zeroed)).verdict ==
        PrecheckVerdict::pass);  // as rounding may leave them
  for (std::size_t i = 100; i < 164; ++i) zeroed[i] = 0;
  const CallJudgement tile = judged(values.doubles(numbers), values.floats(zeroed));
  CHECK(tile.verdict == PrecheckVerdict::error);
  CHECK_MESSAGE(tile.reason.starts_with("64 of 1,000 elements have no correct digit"), tile.reason);
}

TEST_CASE("Sums that cancel out are off by a rounding of what was added") {
  Values values;
  const std::vector<double> tiny = normal_numbers(100, 1e-9);
  std::vector<double> other = tiny;
  for (std::size_t i = 0; i < other.size(); ++i) other[i] += i % 2 == 0 ? 2e-9 : -2e-9;
  const CallOutput reference = values.doubles(tiny);
  const CallOutput device = values.floats(other);
  CHECK(judged(reference, device).verdict == PrecheckVerdict::error);
  const CallJudgement known = judged(reference, device, {.float8_input = false, .input_scale = 1e-2});
  CHECK(known.verdict == PrecheckVerdict::warning);
  CHECK_MESSAGE(known.reason.find("no more than rounding of the inputs") != std::string::npos, known.reason);
  CHECK(judged(reference, device, {.float8_input = false, .input_scale = 1e-6}).verdict ==
        PrecheckVerdict::error);
  // A mask of the least finite number is added to nothing.
  CHECK(judged(reference, device, {.float8_input = false, .input_scale = 3.4e38}).verdict ==
        PrecheckVerdict::error);
}

TEST_CASE("Rounded inputs explain no element of 16 bits that is far off, for sums are made in float32") {
  Values values;
  std::vector<double> numbers = normal_numbers(100, 0.1);
  const CallOutput reference = values.floats(numbers);
  numbers[7] += 0.05;
  const CallOutput device = values.bfloats(numbers);
  CHECK(judged(reference, device, {.float8_input = false, .input_scale = 10}).verdict ==
        PrecheckVerdict::error);
}

TEST_CASE("Numbers at the ends of their type are judged, too") {
  Values values;
  const std::vector<double> huge = scaled(normal_numbers(100), 1e300);
  const CallJudgement judgement = judged(values.doubles(huge), values.doubles(huge));
  CHECK(judgement.verdict == PrecheckVerdict::pass);
  CHECK(judgement.rows[0][Figure::cosine].value == doctest::Approx(1).epsilon(1e-15));
  const std::vector<double> tiny = scaled(normal_numbers(100), 1e-300);
  CHECK(judged(values.doubles(tiny), values.doubles(tiny)).verdict == PrecheckVerdict::pass);
  CHECK(judged(values.doubles(tiny), values.doubles(scaled(tiny, -1))).verdict == PrecheckVerdict::error);
  const std::vector<double> denormal = {1e-310, -3e-320, 0, -0.0};
  CHECK(judged(values.doubles(denormal), values.doubles(denormal)).verdict == PrecheckVerdict::pass);
  CHECK(judged(values.doubles({0, 0}), values.floats({0, 0})).verdict == PrecheckVerdict::pass);
  CHECK(judged(values.doubles({0, 0}), values.floats({1e-3, 0})).verdict == PrecheckVerdict::error);
}

TEST_CASE("Complex numbers are two numbers each") {
  Values values;
  const CallOutput reference = values.tensor<double>(DType::complex128, {1, 2, 3, -4}, {2});
  CHECK(judged(reference, values.tensor<float>(DType::complex64, {1, 2, 3, -4}, {2})).verdict ==
        PrecheckVerdict::pass);
  const CallJudgement other = judged(reference, values.tensor<float>(DType::complex64, {1, 2, 3, 4}, {2}));
  CHECK(other.verdict == PrecheckVerdict::error);
  CHECK_MESSAGE(other.reason.starts_with("[1] (imaginary part) is off by"), other.reason);
}

TEST_CASE("Eight bits are judged by their own last place") {
  Values values;
  // 0x38 is 1 and 0x39 is 1.125 in e4m3fn.
  const CallOutput reference = values.doubles({1, 1.06, -1});
  CHECK(judged(reference, values.tensor<std::uint8_t>(DType::float8_e4m3fn, {0x38, 0x38, 0xb8})).verdict ==
        PrecheckVerdict::pass);
  CHECK(judged(reference, values.tensor<std::uint8_t>(DType::float8_e4m3fn, {0x38, 0x48, 0xb8})).verdict ==
        PrecheckVerdict::error);
}

TEST_CASE("Integers are exact and do not wrap") {
  Values values;
  const auto bytes = [&](std::vector<std::int8_t> numbers) { return values.tensor(DType::int8, numbers); };
  CHECK(judged(bytes({1, 2}), bytes({1, 2})).verdict == PrecheckVerdict::pass);
  const CallJudgement wrapped = judged(bytes({-128}), bytes({127}), {}, "npu_dynamic_quant");
  CHECK(wrapped.status == PythonStatus::pass);  // the Python tool's
  CHECK(wrapped.verdict == PrecheckVerdict::error);
  CHECK_MESSAGE(wrapped.reason.find("by at most 255") != std::string::npos, wrapped.reason);
  const CallOutput five = values.tensor<std::uint8_t>(DType::uint8, {5, 7});
  const CallOutput four = values.tensor<std::uint8_t>(DType::uint8, {4, 7});
  const CallJudgement near = judged(five, four, {}, "npu_dynamic_quant");
  CHECK(near.status == PythonStatus::error);
  CHECK(near.verdict == PrecheckVerdict::pass);
  CHECK_FALSE(near.reason.empty());
  CHECK(judged(five, four).verdict == PrecheckVerdict::error);
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const CallJudgement neighbours = judged(values.tensor<std::int64_t>(DType::int64, {big}),
                                          values.tensor<std::int64_t>(DType::int64, {big - 1}));
  CHECK(neighbours.verdict == PrecheckVerdict::error);
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const CallJudgement ends = judged(values.tensor<std::int64_t>(DType::int64, {kLeast}),
                                    values.tensor<std::int64_t>(DType::int64, {kMost}));
  CHECK_MESSAGE(ends.reason.find("by at most 18446744073709551615") != std::string::npos, ends.reason);
  CHECK(judged(values.tensor<std::uint8_t>(DType::boolean, {0, 1}),
               values.tensor<std::uint8_t>(DType::boolean, {0, 1}))
            .verdict == PrecheckVerdict::pass);
  CHECK(judged(values.tensor<std::int64_t>(DType::int64, {1, -2}),
               values.tensor<std::int32_t>(DType::int32, {1, -2}))
            .verdict == PrecheckVerdict::pass);
}

TEST_CASE("The worst output is the operation's, wherever it stands") {
  Values values;
  const CallOutput good = values.floats({1, 2});
  const CallOutput bad = values.floats({1, 3});
  const CallOutput slightly = values.floats({1, 2.0003});
  const CallOutput reference{CallOutput::List{{good, good, good}, true}};
  const CallJudgement judgement = judged(reference, {CallOutput::List{{bad, good, slightly}, true}});
  CHECK(judgement.verdict == PrecheckVerdict::error);
  CHECK_MESSAGE(judgement.reason.starts_with("output 0: [1] is off by"), judgement.reason);
  REQUIRE(judgement.rows.size() == 3);
  CHECK(judgement.rows[2].name == "Torch.mul.0.forward.output.2");

  const CallJudgement shorter = judged(reference, {CallOutput::List{{good, good}, true}});
  CHECK(shorter.verdict == PrecheckVerdict::error);
  CHECK(shorter.reason == "output 2: the device has no such output");
  const CallJudgement longer =
      judged({CallOutput::List{{good}, true}}, {CallOutput::List{{good, good}, true}});
  CHECK(longer.status == PythonStatus::pass);
  CHECK(longer.verdict == PrecheckVerdict::error);

  const CallOutput inner{CallOutput::List{{good, {CallOutput::List{{good}, true}}}, true}};
  const CallOutput wrong{CallOutput::List{{good, {CallOutput::List{{bad}, true}}}, true}};
  CHECK(judged(inner, inner).verdict == PrecheckVerdict::pass);
  const CallJudgement nested = judged(inner, wrong);
  CHECK(nested.verdict == PrecheckVerdict::error);
  CHECK_MESSAGE(nested.reason.starts_with("output 1: [0]: [1] is off by"), nested.reason);
}

TEST_CASE("Outputs that cannot be judged do not pass") {
  Values values;
  const CallOutput tensor = values.floats({1, 2});
  const CallOutput other{OtherOutput{"<class 'set'>"}};
  CHECK(judged(other, other).verdict == PrecheckVerdict::skip);
  CHECK(judged({}, tensor).verdict == PrecheckVerdict::skip);
  CHECK(judged({}, {}).verdict == PrecheckVerdict::none);
  CHECK(judged(tensor, {}).verdict == PrecheckVerdict::error);
  CHECK(judged(tensor, values.doubles({1, 2})).verdict == PrecheckVerdict::pass);
  CHECK(judged(tensor, values.tensor<std::int32_t>(DType::int32, {1, 2})).verdict == PrecheckVerdict::error);
  CHECK(judged(tensor, values.floats({1, 2, 3})).reason == "the shapes are (2,) and (3,)");
  CallOutput broken = tensor;
  std::get<TensorOutput>(broken.value).shape = {std::uint64_t{1} << 62, 16};
  CHECK(judged(broken, broken).verdict == PrecheckVerdict::skip);
  std::get<TensorOutput>(broken.value).shape = {3};
  CHECK(judged(broken, broken).verdict == PrecheckVerdict::skip);
  CallOutput empty = tensor;
  std::get<TensorOutput>(empty.value) = {DType::float32, {std::uint64_t{1} << 62, 0, 64}, {}};
  CHECK(judged(empty, empty).verdict == PrecheckVerdict::pass);
  const CallJudgement dropout = judged(tensor, tensor, {}, "dropout");
  CHECK(dropout.verdict == PrecheckVerdict::skip);
  CHECK(dropout.status == PythonStatus::pass);
  CHECK(dropout.rows.at(0).only_ours);
}

TEST_CASE("Dropout leaves as many zeros on both sides") {
  Values values;
  std::vector<double> half(1000, 1.0);
  for (std::size_t i = 0; i < 500; ++i) half[i] = 0;
  std::vector<double> fewer = half;
  for (std::size_t i = 0; i < 150; ++i) fewer[i] = 1;
  CHECK(judged(values.doubles(half), values.floats(half), {}, "dropout").status == PythonStatus::pass);
  const CallJudgement other = judged(values.doubles(half), values.floats(fewer), {}, "dropout");
  CHECK(other.status == PythonStatus::error);
  CHECK(other.reason == "35 % of the elements are zero instead of 50 %");
}

TEST_CASE("Python's numbers are compared as such") {
  const auto real = [](const char* text, double value) {
    return CallOutput{ScalarOutput{ScalarOutput::ScalarKind::real, text, value}};
  };
  const auto integer = [](const char* text) {
    return CallOutput{ScalarOutput{ScalarOutput::ScalarKind::integer, text}};
  };
  CHECK(
      judged(integer("123456789012345678901234567890"), integer("123456789012345678901234567890")).verdict ==
      PrecheckVerdict::pass);
  CHECK(judged(integer("5"), integer("6")).reason == "6 instead of 5");
  CHECK(judged(real("nan", kNaN), real("nan", kNaN)).verdict == PrecheckVerdict::pass);
  CHECK(judged(real("0.1", 0.1), real("0.10000000149011612", 0.1F)).verdict == PrecheckVerdict::pass);
  CHECK(judged(real("0.1", 0.1), real("0.11", 0.11)).verdict == PrecheckVerdict::error);
  CHECK(judged(real("inf", kInfinity), real("inf", kInfinity)).verdict == PrecheckVerdict::pass);
  CHECK(judged(real("inf", kInfinity), real("-inf", -kInfinity)).verdict == PrecheckVerdict::error);
  CHECK(judged(real("1.0", 1), integer("1")).verdict == PrecheckVerdict::error);
}

/// Every number of a result, as bits.
std::vector<std::uint64_t> image(const FloatFigures& f) {
  std::vector<std::uint64_t> all = {f.within_hundredth,
                                    f.within_thousandth,
                                    f.within_ten_thousandth,
                                    f.unequal,
                                    f.zeros,
                                    f.above,
                                    f.below,
                                    f.small,
                                    f.normal,
                                    f.nonfinite,
                                    f.small_errors,
                                    f.relative_errors,
                                    f.nonfinite_errors,
                                    f.ulp_above,
                                    f.max_units_at,
                                    f.wrong,
                                    f.nonfinite_unequal,
                                    f.nonfinite_unequal_at};
  for (const double value :
       {f.max_reference, f.max_device, f.cosine, f.max_absolute, f.max_relative, f.mean_relative,
        f.mean_square, f.max_ulp, f.mean_ulp, f.max_units, f.max_units_error, f.reference_at, f.device_at}) {
    // A NaN is a NaN.
    std::uint64_t bits = 0;
    if (!std::isnan(value)) std::memcpy(&bits, &value, sizeof bits);
    all.push_back(std::isnan(value) ? ~bits : bits);
  }
  return all;
}

TEST_CASE("Figures are the same bits whatever the instruction set") {
  Values values;
  FloatRequest request;
  request.small_value = 0.25;
  request.small_tolerance = 1e-7;
  request.relative_tolerance = 1e-6;
  request.ulp_threshold = 1;
  request.sorts = request.means = request.ulp = true;
  for (const std::size_t count : {1UL, 15UL, 16UL, 1023UL, 1024UL, 5003UL}) {
    for (const bool nonfinite : {false, true}) {
      std::vector<double> reference = normal_numbers(count);
      std::vector<double> device = reference;
      for (std::size_t i = 0; i < count; ++i) device[i] *= 1 + 1e-6 * static_cast<double>(i % 7);
      for (std::size_t i = 0; nonfinite && i < count; i += 3)
        (i % 2 == 0 ? reference : device)[i] = i % 5 == 0 ? kNaN : -kInfinity;
      for (const CallOutput& b :
           {values.doubles(reference), values.floats(reference), values.bfloats(reference)}) {
        for (const CallOutput& d : {values.doubles(device), values.floats(device), values.bfloats(device)}) {
          const auto figures = [&](tensor::Isa isa) {
            return image(float_figures(std::get<TensorOutput>(b.value), std::get<TensorOutput>(d.value),
                                       request, isa));
          };
          for (const tensor::Isa isa : tensor::available_isas())
            CHECK(figures(isa) == figures(tensor::Isa::scalar));
        }
      }
    }
  }
}

TEST_CASE("A sum of pieces is the sum in halves of the whole") {
  for (const std::size_t count : {0UL, 1UL, 7UL, 8UL, 127UL, 128UL, 129UL, 1000UL, 5003UL}) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = 0.1F + static_cast<float>(i % 13);
    PairwiseSum<float> at_once(count, judge_scalar::kKernels.float32.leaf_sum);
    at_once.add(numbers.data(), count);
    PairwiseSum<float> pieces(count, judge_scalar::kKernels.float32.leaf_sum);
    for (std::size_t i = 0; i < count; i += 3)
      pieces.add(numbers.data() + i, std::min<std::size_t>(3, count - i));
    CHECK(pieces.total() == at_once.total());
    double exact = 0;
    for (const float number : numbers) exact += number;
    CHECK(at_once.total() == doctest::Approx(exact).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace msprobe::precheck::verdict_test
