// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/packed_weight.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "checkpoint/step_check.hpp"
#include "formats/stored_tensor.hpp"
#include "support/error.hpp"

namespace msprobe::checkpoint {
namespace {

Parameter stored(const char* name, std::vector<int> bytes, const Shape& shape, tensor::DType dtype) {
  std::vector<std::byte> raw;
  for (const int byte : bytes) raw.push_back(static_cast<std::byte>(byte));
  formats::StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides = formats::row_major_strides(shape);
  tensor.storage = memory_source(std::move(raw));
  return whole(name, dtype, shape, [tensor] { return tensor; });
}

std::vector<float> elements(const Parameter& parameter) {
  std::vector<float> values(static_cast<std::size_t>(parameter.numel()));
  ParameterReader(parameter).read(std::as_writable_bytes(std::span(values)));
  return values;
}

/// Two rows of five codes of 4 bits in words of 32 bits, with groups of 4.
PackedWeight two_rows() {
  PackedWeight packed;
  packed.shape = {2, 5};
  packed.rows = 2;
  packed.columns = 5;
  packed.bits = 4;
  packed.row_bytes = 4;
  packed.codes = stored("codes", {0x10, 0x32, 0x0f, 0, 0x98, 0xba, 0x07, 0}, {2, 1}, tensor::DType::int32);
  packed.levels = std::make_shared<const Levels>(integer_levels(4, -8, false));
  packed.scale_columns = 4;
  packed.load_scales = [] { return Scales{{1, 2, 10, 0.5F}, {}, {0, 1, 0, 0}, 2, {}}; };
  return packed;
}

}  // namespace

TEST_CASE("codes become the numbers that they stand for") {
  const Parameter weight = decoded("w", two_rows());
  CHECK(weight.shape == Shape{2, 5});
  CHECK(elements(weight) == std::vector<float>{-8, -7, -6, -5, 12, 0, 10, 20, 30, -0.5F});
  CHECK(elements(narrow(weight, 0, 1, 1)) == std::vector<float>{0, 10, 20, 30, -0.5F});
  CHECK(elements(narrow(weight, 1, 3, 2)) == std::vector<float>{-5, 12, 30, -0.5F});
  CHECK(elements(*decoded("w", two_rows()).half_step) ==
        std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F, 1, 5, 5, 5, 5, 0.25F});
}

TEST_CASE("a scale that was rounded widens the steps") {
  PackedWeight packed = two_rows();
  packed.load_scales = [] { return Scales{{1, 1, 1, 1}, {0.25F, 0, 0, 0}, {}, 2, {}}; };
  // Half of 1.25, and 8 times 0.25.
  CHECK(elements(*decoded("w", packed).half_step)[0] == doctest::Approx(2.625));
}

TEST_CASE("columns may be in another order than their groups") {
  PackedWeight packed = two_rows();
  packed.load_scales = [] { return Scales{{1, 2, 10, 0.5F}, {}, {}, 2, {1, 0, 1, 0, 0}}; };
  CHECK(elements(decoded("w", packed)) == std::vector<float>{-16, -7, -12, -5, 7, 0, 10, 1, 30, -10});
}

TEST_CASE("scales and codes that do not fit are refused") {
  PackedWeight packed = two_rows();
  packed.load_scales = [] { return Scales{{1, 2, 10}, {}, {}, 2, {}}; };
  CHECK_THROWS_AS(elements(decoded("w", packed)), FormatError);
  packed.load_scales = [] { return Scales{{1, 2, 10, 1}, {}, {}, 2, {0, 1, 2, 0, 0}}; };
  CHECK_THROWS_AS(elements(decoded("w", packed)), FormatError);
  packed.row_bytes = 2;
  CHECK_THROWS_AS(decoded("w", packed), FormatError);
}

TEST_CASE("levels of small floating-point numbers") {
  const Levels fp4 = float4_levels();
  CHECK(fp4.values[5] == 3);
  CHECK(fp4.half_gaps[5] == 0.5F);
  CHECK(fp4.values[15] == -6);
  CHECK(fp4.half_gaps[15] == 2);  // up to 8
  const Levels fp8 = float8_levels(tensor::DType::float8_e4m3fn);
  CHECK(fp8.values[0x7e] == 448);
  CHECK(fp8.half_gaps[0x7e] == 16);
  CHECK(fp8.half_gaps[0x38] == doctest::Approx(0.0625));  // 1, between 0.9375 and 1.125
  CHECK(fp8.half_gaps[0] == doctest::Approx(0x1p-10));
}

TEST_CASE("what is further away than half a step has its place") {
  const Parameter stepped = decoded("w", two_rows());
  Parameter weight = stepped;
  weight.half_step = nullptr;
  CHECK_FALSE(check_steps(weight, weight).tried);
  CHECK(check_steps(stepped, weight).holds());
  std::vector<float> other = elements(weight);
  other[4] += 1;     // half a step
  other[6] -= 7.5F;  // one and a half
  std::vector<int> bytes;
  for (const std::byte byte : std::as_bytes(std::span(other))) bytes.push_back(std::to_integer<int>(byte));
  const StepCheck check = check_steps(stored("o", bytes, {2, 5}, tensor::DType::float32), stepped);
  CHECK(check.beyond == 1);
  CHECK(check.first == 6);
  CHECK(check.farthest == doctest::Approx(1.5));
}

TEST_CASE("what is infinite is near itself alone") {
  PackedWeight packed = two_rows();
  packed.load_scales = [] {
    return Scales{{std::numeric_limits<float>::infinity(), 1, 1, 1}, {}, {}, 2, {}};
  };
  const Parameter infinite = decoded("w", packed);
  CHECK(check_steps(infinite, infinite).holds());
  // Four of them have the infinite scale.
  CHECK(check_steps(infinite, decoded("w", two_rows())).beyond >= 4);
}

}  // namespace msprobe::checkpoint
