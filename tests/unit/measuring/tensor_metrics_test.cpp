// SPDX-License-Identifier: Apache-2.0
#include "measuring/tensor_metrics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/error.hpp"

namespace msprobe::compare_tensor_metrics_test {

using namespace msprobe;
using namespace msprobe::measuring;
using formats::StoredTensor;
using tensor::DType;

namespace {

using Shape = std::vector<std::int64_t>;
using Numbers = std::array<double, kMetrics>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

/// The elements' bytes as in a file.
template <typename T>
StoredTensor stored(DType dtype, const std::vector<T>& elements, Shape shape) {
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  if (!elements.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  StoredTensor result;
  result.dtype = dtype;
  result.strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    result.strides[i] = stride;
    stride *= shape[i];
  }
  result.shape = std::move(shape);
  result.storage = memory_source(std::move(bytes));
  return result;
}

PythonRules rules_of(bool python) {
  return python ? python_rules() : PythonRules();
}

Shape flat(std::size_t count) {
  return {static_cast<std::int64_t>(count)};
}

StoredTensor f32(const std::vector<float>& values) {
  return stored(DType::float32, values, flat(values.size()));
}
StoredTensor f64(const std::vector<double>& values) {
  return stored(DType::float64, values, flat(values.size()));
}
StoredTensor i64(const std::vector<std::int64_t>& values) {
  return stored(DType::int64, values, flat(values.size()));
}
/// float16 values that the caller spells as bits.
StoredTensor f16(const std::vector<std::uint16_t>& bits) {
  return stored(DType::float16, bits, flat(bits.size()));
}
/// Real and imaginary parts in turn.
StoredTensor c64(const std::vector<float>& parts) {
  return stored(DType::complex64, parts, flat(parts.size() / 2));
}
template <typename T>
StoredTensor scalar(DType dtype, T value) {
  return stored(dtype, std::vector<T>{value}, {});
}

bool close(double value, double want) {
  if (std::isnan(want)) return std::isnan(value);
  return value == want || std::fabs(value - want) <= 1e-11 * std::fabs(want) + 1e-60;
}

void check(const TensorMetrics& metrics, const Numbers& want, bool is_scalar) {
  REQUIRE(metrics.status == MetricStatus::computed);
  CHECK(metrics.is_scalar == is_scalar);
  for (std::size_t i = 0; i < kMetrics; ++i) {
    if (is_scalar && i != kMaxAbs && i != kMaxRelative) continue;
    CAPTURE(i);
    CHECK_MESSAGE(close(metrics.value[i], want[i]), metrics.value[i], " instead of ", want[i]);
  }
}

/// The numbers of both rule sets.
void both(const StoredTensor& target, const StoredTensor& golden, const Numbers& want) {
  for (const bool python : {false, true}) {
    CAPTURE(python);
    check(compare_tensors(target, golden, rules_of(python)), want, false);
  }
}

void scalars(const StoredTensor& target, const StoredTensor& golden, bool python, double max_abs,
             double max_relative) {
  CAPTURE(python);
  check(compare_tensors(target, golden, rules_of(python)), {0, 0, max_abs, max_relative, 0, 0}, true);
}

bool says(const TensorMetrics& metrics, std::string_view part) {
  return std::any_of(metrics.messages.begin(), metrics.messages.end(),
                     [&](const std::string& message) { return message.find(part) != std::string::npos; });
}

void status(const StoredTensor& target, const StoredTensor& golden, bool python, MetricStatus want,
            std::string_view message, bool failed) {
  const TensorMetrics metrics = compare_tensors(target, golden, rules_of(python));
  CHECK(metrics.status == want);
  CHECK(metrics.failed == failed);
  REQUIRE(!metrics.messages.empty());
  CHECK(metrics.messages.back() == message);
}

constexpr double kTwoThirds = 0.666666666667;

}  // namespace

TEST_CASE("metrics of float tensors, both rule sets") {
  both(f32({1, 2, 3.5F}), f32({1, 2, 3}), {0.997408650736, 0.5, 0.5, 0.166666671634, kTwoThirds, kTwoThirds});
  both(f32({1.0001F, 2, 3}), f32({1, 2, 3}),
       {1.0, 0.00010001659393310547, 0.000100016594, 0.000100016594, 1.0, 1.0});
  both(f32({1, 2, 3.05F}), f32({1, 2, 3}),
       {0.999969, 0.04999995231628418, 0.049999952316, 0.016666650772, kTwoThirds, kTwoThirds});
  both(f32({1, 2, 3.2F}), f32({1, 2, 3}),
       {0.999531198485, 0.20000004768371582, 0.200000047684, 0.066666685045, kTwoThirds, kTwoThirds});
  both(f32({-1, -2, -3}), f32({1, 2, 3}), {-1.0, 7.483314773547883, 6.0, 2.0, 0.0, 0.0});
  both(f32({1, kNanF, 3}), f32({1.5F, kNanF, 3}),
       {0.989949493661, 0.5, 0.5, 0.333333343267, kTwoThirds, kTwoThirds});
  both(f32({kNanF, kNanF}), f32({kNanF, kNanF}), {1, 0, 0, 0, 1, 1});
  both(f32({0, 0, 0}), f32({0, 0, 0}), {1, 0, 0, 0, 1, 1});
  both(f32({0, 0, 0}), f32({1, 2, 3}), {kNan, 3.7416573867739413, 3.0, 1.0, 0.0, 0.0});
  both(f32({1, 2, 3}), f32({0, 0, 0}), {kNan, 3.7416573867739413, 3.0, 25165824.0, 0.0, 0.0});
  both(f32({0.001F, 2, 3}), f32({0, 2, 3}),
       {1.0, 0.0010000000474974513, 0.001000000047, 8388.6083984375, kTwoThirds, kTwoThirds});
  both(f64({0.001, 2}), f64({0, 2}), {1.0, 0.001, 0.001, 4503599627370.496, 0.5, 0.5});
  both(f32({1e30F, 2}), f32({2e30F, 2}),
       {1.0, 1.0000000150474662e+30, 1.0000000150474662e+30, 0.5, 0.5, 0.5});
  both(f32({1e-42F, 2}), f32({2e-42F, 2}), {1.0, 9.991258050635946e-43, 0.0, 0.499649614096, 0.5, 0.5});
  both(f32({3e38F, 1}), f32({-3e38F, 1}),
       {-1.0, 6.0000000109955115e+38, 6.0000000109955115e+38, kInfinity, 0.5, 0.5});
  both(f32({1.001F, 2, 3}), f32({1, 2, 3}),
       {1.0, 0.001000046730041504, 0.00100004673, 0.00100004673, kTwoThirds, 1.0});
}

TEST_CASE("metrics of other types, both rule sets") {
  both(f16({0x3C00, 0x4000}), f16({0x0000, 0x4000}), {0.894427191, 1.0, 1.0, 8388608.0, 0.5, 0.5});
  const auto i32 = [](const std::vector<std::int32_t>& values) {
    return stored(DType::int32, values, flat(values.size()));
  };
  both(i32({1, 2, 4}), i32({1, 2, 3}), {0.991460133984, 1.0, 1.0, 0.333333333333, kTwoThirds, kTwoThirds});
  both(i32({1, 2}), i32({0, 2}), {0.894427191, 1.0, 1.0, 4503599627370496.0, 0.5, 0.5});
  const auto booleans = [](const std::vector<std::uint8_t>& values) {
    return stored(DType::boolean, values, flat(values.size()));
  };
  both(booleans({1, 0, 1}), booleans({1, 1, 1}), {0.816496580928, 1.0, 1.0, 1.0, kTwoThirds, kTwoThirds});
  both(stored(DType::bfloat16, std::vector<std::uint16_t>{0x3F80, 0x4000}, {2}),
       stored(DType::bfloat16, std::vector<std::uint16_t>{0x3F80, 0x4080}, {2}),
       {0.976187060184, 2.0, 2.0, 0.5, 0.5, 0.5});
}

TEST_CASE("other dtypes on the two sides are compared and told") {
  for (const bool python : {false, true}) {
    const TensorMetrics metrics =
        compare_tensors(f16({0x3C00, 0x4000, 0x4300}), f32({1, 2, 3}), rules_of(python));
    check(metrics, {0.997408650736, 0.5, 0.5, 0.166666671634, kTwoThirds, kTwoThirds}, false);
    CHECK(metrics.messages == std::vector<std::string>{"Dtype of NPU and bench tensor do not match."});
    CHECK_FALSE(metrics.failed);
    // Types that NumPy lacks are float32 to the Python tool.
    CHECK(compare_tensors(stored(DType::bfloat16, std::vector<std::uint16_t>{0x3F80, 0x4000}, {2}),
                          f32({1, 2}), rules_of(python))
              .messages.empty());
  }
  check(compare_tensors(i64({1, 3}), f64({1, 2}), {}), {0.989949493661, 1, 1, 0.5, 0.5, 0.5}, false);
}

TEST_CASE("a message names zero vectors") {
  for (const bool python : {false, true}) {
    const PythonRules rules = rules_of(python);
    CHECK(says(compare_tensors(f32({0, 0}), f32({1, 2}), rules), "All the data is Zero in npu dump data."));
    CHECK(says(compare_tensors(f32({1, 2}), f32({0, 0}), rules), "All the data is Zero in Bench dump data."));
    CHECK(compare_tensors(f32({0, 0}), f32({0, 0}), rules).messages.empty());
  }
}

TEST_CASE("NaN and Inf at other places") {
  const std::string message = "The position of inf or nan in NPU and bench Tensor do not match.";
  const auto na = MetricStatus::not_applicable;
  status(f32({1, kNanF, 3}), f32({1, 2, 3}), true, na, message, true);
  status(f32({1, kNanF, 3}), f32({1, 2, 3}), false, na, message + " (1 of 3 elements)", true);
  status(f32({1, kNanF, 3}), f32({1, kInf, 3}), true, na, message, true);
  status(f32({1, kNanF, 3}), f32({1, kInf, 3}), false, na, message + " (1 of 3 elements)", true);
  status(f32({kInf, kNanF, kInf}), f32({1, kNanF, -kInf}), false, na,
         message + " (1 of 3 elements) (1 infinities of opposite sign)", true);
}

TEST_CASE("infinities of opposite sign are equal to the Python tool only") {
  check(compare_tensors(f32({1, kInf, 3}), f32({1, -kInf, 3}), {.infinities_without_sign = true}),
        {1, 0, 0, 0, 1, 1}, false);
  status(f32({1, kInf, 3}), f32({1, -kInf, 3}), false, MetricStatus::not_applicable,
         "The position of inf or nan in NPU and bench Tensor do not match. (1 infinities of opposite sign)",
         true);
  both(f32({1, kInf, 3}), f32({1, kInf, 3}), {1, 0, 0, 0, 1, 1});
}

TEST_CASE("64-bit integers: exact, or in double as the Python tool") {
  constexpr std::int64_t kBig = std::int64_t{1} << 53;
  check(compare_tensors(i64({kBig + 1, 2}), i64({kBig, 2}), {.integers_as_double = true}), {1, 0, 0, 0, 1, 1},
        false);
  check(compare_tensors(i64({kBig + 1, 2}), i64({kBig, 2}), {}), {1, 1, 1, 0, 1, 1}, false);
  const auto u64 = [](const std::vector<std::uint64_t>& values) {
    return stored(DType::uint64, values, flat(values.size()));
  };
  check(compare_tensors(u64({UINT64_MAX, 1}), u64({UINT64_MAX - 1, 1}), {}), {1, 1, 1, 0, 1, 1}, false);
  check(compare_tensors(u64({0, 1}), u64({UINT64_MAX, 1}), {}),
        {0, 18446744073709551615.0, 18446744073709551615.0, 1, 0.5, 0.5}, false);
  check(compare_tensors(i64({INT64_MIN, 1}), i64({INT64_MAX, 1}), {}),
        {-1, 18446744073709551615.0, 18446744073709551615.0, 2, 0.5, 0.5}, false);
}

TEST_CASE("complex numbers: as pairs of reals, or their real parts as the Python tool") {
  const StoredTensor n = c64({1, 1, 2, 2});
  const StoredTensor b = c64({1, 5, 2, -2});
  check(compare_tensors(n, b, {.real_parts_only = true}), {1, 0, 0, 0, 1, 1}, false);
  const TensorMetrics ours = compare_tensors(n, b, {});
  check(ours, {0.325395686728, 5.656854249492381, 4.0, 2.0, 0.5, 0.5}, false);
  CHECK(says(ours, "Complex tensors are compared as pairs of real numbers."));
  CHECK(compare_tensors(n, b, {.real_parts_only = true}).messages.empty());
}

TEST_CASE("0-d tensors, the Python tool's way: in their own type") {
  scalars(scalar(DType::float32, 1.5F), scalar(DType::float32, 1.0F), true, 0.5, 0.5);
  scalars(scalar(DType::float32, 1.0F), scalar(DType::float32, 0.0F), true, 1.0, 8388608.0);
  scalars(scalar(DType::float32, kNanF), scalar(DType::float32, kNanF), true, kNan, kNan);
  scalars(scalar(DType::float32, kInf), scalar(DType::float32, 1.0F), true, kInfinity, kInfinity);
  scalars(scalar(DType::float32, kInf), scalar(DType::float32, kInf), true, kNan, kNan);
  scalars(scalar(DType::int64, std::int64_t{5}), scalar(DType::int64, std::int64_t{3}), true, 2.0,
          0.666666686535);
  scalars(scalar(DType::uint8, std::uint8_t{1}), scalar(DType::uint8, std::uint8_t{2}), true, 255.0, 0.5);
  scalars(scalar(DType::int8, std::int8_t{-128}), scalar(DType::int8, std::int8_t{1}), true, 127.0, 129.0);
  scalars(scalar(DType::boolean, std::uint8_t{1}), scalar(DType::boolean, std::uint8_t{0}), true, 1.0,
          8388608.0);
  scalars(scalar(DType::float16, std::uint16_t{0x3C66}), scalar(DType::float16, std::uint16_t{0x3C00}), true,
          0.099609375, 0.099609375);
  scalars(stored(DType::complex64, std::vector<float>{1, 1}, {}),
          stored(DType::complex64, std::vector<float>{1, 5}, {}), true, 4.0, 0.0);
}

TEST_CASE("0-d tensors by our rules: as all others") {
  scalars(scalar(DType::float32, 1.5F), scalar(DType::float32, 1.0F), false, 0.5, 0.5);
  scalars(scalar(DType::float32, 1.0F), scalar(DType::float32, 0.0F), false, 1.0, 8388608.0);
  scalars(scalar(DType::float32, kNanF), scalar(DType::float32, kNanF), false, 0, 0);
  scalars(scalar(DType::float32, kInf), scalar(DType::float32, kInf), false, 0, 0);
  scalars(scalar(DType::int64, std::int64_t{5}), scalar(DType::int64, std::int64_t{3}), false, 2.0,
          0.666666666667);
  scalars(scalar(DType::uint8, std::uint8_t{1}), scalar(DType::uint8, std::uint8_t{2}), false, 1.0, 0.5);
  scalars(scalar(DType::int8, std::int8_t{-128}), scalar(DType::int8, std::int8_t{1}), false, 129.0, 129.0);
  scalars(stored(DType::complex64, std::vector<float>{1, 1}, {}),
          stored(DType::complex64, std::vector<float>{1, 5}, {}), false, 4.0, 0.8);
  CHECK(compare_tensors(scalar(DType::float32, kInf), scalar(DType::float32, 1.0F), {}).status ==
        MetricStatus::not_applicable);
  CHECK(compare_tensors(scalar(DType::float32, kNanF), scalar(DType::float32, 1.0F), {}).failed);
}

TEST_CASE("one message for a 0-d tensor, and size-1 axes do not count") {
  for (const bool python : {false, true}) {
    const TensorMetrics one = compare_tensors(stored(DType::float32, std::vector<float>{1.5F}, {1}),
                                              scalar(DType::float32, 1.0F), rules_of(python));
    CHECK(one.is_scalar);
    CHECK(one.messages ==
          std::vector<std::string>{"This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One "
                                   "Thousandth Err Ratio' and 'Five Thousandths Err Ratio'."});
    check(compare_tensors(stored(DType::float32, std::vector<float>{1, 2, 3.5F}, {1, 3, 1}), f32({1, 2, 3}),
                          rules_of(python)),
          {0.997408650736, 0.5, 0.5, 0.166666671634, kTwoThirds, kTwoThirds}, false);
  }
}

TEST_CASE("tensors that cannot be compared") {
  const StoredTensor empty = f32({});
  const std::string shape = "Shape of NPU and bench tensor do not match. Skipped.";
  const std::string nothing = "This is empty data, can not compare.";
  for (const bool python : {false, true}) {
    status(stored(DType::float32, std::vector<float>(6), {2, 3}),
           stored(DType::float32, std::vector<float>(6), {3, 2}), python, MetricStatus::shape_unmatched,
           shape, true);
    status(empty, empty, python, MetricStatus::unsupported, nothing, false);
    status(empty, f32({1, 2}), python, MetricStatus::unsupported, nothing, true);
    status(f32({1, 2}), empty, python, MetricStatus::shape_unmatched, shape, true);
    status(scalar(DType::float32, 1.0F), f32({1, 2}), python, MetricStatus::shape_unmatched, shape, true);
  }
}

TEST_CASE("a file that is shorter than its tensor is an error, not a number") {
  StoredTensor shortened = f32({1, 2, 3});
  shortened.shape = {4};
  CHECK_THROWS_AS(compare_tensors(shortened, f32({1, 2, 3, 4}), {}), FormatError);
}

TEST_CASE("twelve decimals") {
  CHECK(round_12(4.9e-13) == 0.0);
  CHECK(round_12(5e-13) == 0.0);
  CHECK(round_12(5.1e-13) == 1e-12);
  CHECK(round_12(-5.1e-13) == -1e-12);
  CHECK(round_12(2.0 / 3.0) == kTwoThirds);
  CHECK(round_12(1e300) == 1e300);
  CHECK(std::isinf(round_12(-kInfinity)));
  CHECK(std::isnan(round_12(kNan)));
}

namespace {

/// The definition in extended precision; relative errors in the working type R.
template <typename R, typename T>
Numbers reference(const std::vector<T>& target, const std::vector<T>& golden) {
  long double dot = 0;
  long double nn = 0;
  long double bb = 0;
  long double dd = 0;
  long double most = 0;
  R relative = 0;
  std::size_t one = 0;
  std::size_t five = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto n = static_cast<long double>(target[i]);
    const auto b = static_cast<long double>(golden[i]);
    dot += n * b;
    nn += n * n;
    bb += b * b;
    dd += (n - b) * (n - b);
    most = std::max(most, std::fabs(n - b));
    auto rn = static_cast<R>(target[i]);
    auto rb = static_cast<R>(golden[i]);
    if (rb == 0) {
      rn += std::numeric_limits<R>::epsilon();
      rb += std::numeric_limits<R>::epsilon();
    }
    const R error = std::fabs((rn - rb) / rb);
    relative = std::max(relative, error);
    one += error < static_cast<R>(0.001) ? 1 : 0;
    five += error < static_cast<R>(0.005) ? 1 : 0;
  }
  const auto count = static_cast<double>(target.size());
  return {static_cast<double>(dot / (std::sqrt(nn) * std::sqrt(bb))),
          static_cast<double>(std::sqrt(dd)),
          static_cast<double>(most),
          static_cast<double>(relative),
          static_cast<double>(one) / count,
          static_cast<double>(five) / count};
}

void check_against(const TensorMetrics& metrics, const Numbers& want) {
  REQUIRE(metrics.status == MetricStatus::computed);
  for (std::size_t i = 0; i < kMetrics; ++i) {
    CAPTURE(i);
    // A cosine above 0.9999 keeps six decimals, the other metrics but EucDist twelve.
    const double rounding = i == kCosine ? (want[i] > 0.9999 ? 5e-7 : 1e-12) : i == kEucDist ? 0 : 1e-12;
    CHECK(std::fabs(metrics.value[i] - want[i]) <= 1e-12 * std::fabs(want[i]) + rounding);
  }
}

}  // namespace

TEST_CASE("random data against the definition in extended precision") {
  std::mt19937_64 random(20261121);
  std::normal_distribution<double> normal;
  for (const std::size_t count : {2, 15, 17, 16'384, 16'385, 100'001}) {
    CAPTURE(count);
    std::vector<float> fn(count);
    std::vector<float> fb(count);
    std::vector<double> dn(count);
    std::vector<double> db(count);
    std::vector<std::int32_t> in(count);
    std::vector<std::int32_t> ib(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double noise = normal(random) * (i % 3 == 0 ? 1e-3 : i % 3 == 1 ? 1e-2 : 0.0);
      db[i] = i % 97 == 5 ? 0.0 : normal(random) * 100;
      dn[i] = db[i] * (1 + noise);
      fb[i] = static_cast<float>(db[i]);
      fn[i] = static_cast<float>(dn[i]);
      ib[i] = static_cast<std::int32_t>(random());
      in[i] = i % 2 == 0 ? ib[i] : static_cast<std::int32_t>(random());
    }
    for (const bool python : {false, true}) {
      const PythonRules rules = rules_of(python);
      check_against(compare_tensors(f32(fn), f32(fb), rules), reference<float>(fn, fb));
      check_against(compare_tensors(f64(dn), f64(db), rules), reference<double>(dn, db));
      check_against(compare_tensors(stored(DType::int32, in, flat(count)),
                                    stored(DType::int32, ib, flat(count)), rules),
                    reference<double>(in, ib));
    }
  }
}

TEST_CASE("views give what their elements give") {
  const std::vector<float> values = {1, 4, 2, 5, 3.5F, 6};
  StoredTensor transposed = stored(DType::float32, values, {3, 2});
  transposed.shape = {2, 3};
  transposed.strides = {1, 2};
  check(compare_tensors(transposed, stored(DType::float32, std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}), {}),
        reference<float>(std::vector<float>{1, 2, 3.5F, 4, 5, 6}, std::vector<float>{1, 2, 3, 4, 5, 6}),
        false);
}

TEST_CASE("rows behind the valid ones of the target count as zero") {
  const StoredTensor target = stored(DType::float32, std::vector<float>{1, 2, 9, 9, kNanF, 9}, {3, 2});
  const StoredTensor golden = stored(DType::float32, std::vector<float>{1, 2, 0, 0, 0, 0}, {3, 2});
  check(compare_tensors(target, golden, {}, 1), {1, 0, 0, 0, 1, 1}, false);
  CHECK(compare_tensors(target, golden, {}, 3).status == MetricStatus::not_applicable);
  CHECK(compare_tensors(target, golden, {}, 100).status == MetricStatus::not_applicable);
  CHECK(compare_tensors(target, golden, {}, -5).value[kMaxAbs] == 2);
}

TEST_CASE("sums of integers") {
  CHECK(sum_of_integers(i64({5, -2, 4})) == 7);
  CHECK(sum_of_integers(i64({})) == 0);
  CHECK(sum_of_integers(scalar(DType::boolean, std::uint8_t{1})) == 1);
  CHECK(sum_of_integers(i64({INT64_MAX, INT64_MAX})) == 9'000'000'000'000'000'000);
  CHECK_THROWS_AS(sum_of_integers(f32({1})), FormatError);
}

TEST_CASE("what is behind the valid length of the target is 0, and the row tells it") {
  const StoredTensor target = stored<float>(DType::float32, {1, 2, 7, kNanF}, {2, 1, 2});
  const StoredTensor golden = stored<float>(DType::float32, {1, 2, 0, 0}, {2, 2});
  const TensorMetrics metrics = compare_tensors(target, golden, PythonRules(), 1);
  CHECK(metrics.status == MetricStatus::computed);
  CHECK(metrics.value[kMaxAbs] == 0);
  CHECK(metrics.messages == std::vector<std::string>{behind_valid_length(1)});
  CHECK(behind_valid_length(1) ==
        "NPU elements from [1] on were taken as 0: they are beyond the valid length of the call.");
  // No element is beyond the valid length.
  const TensorMetrics whole = compare_tensors(golden, golden, PythonRules(), 2);
  CHECK(whole.messages.empty());
  const TensorMetrics none = compare_tensors(target, golden, PythonRules(), -3);
  CHECK(none.value[kMaxAbs] == 2);
}

}  // namespace msprobe::compare_tensor_metrics_test
