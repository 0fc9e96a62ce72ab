// SPDX-License-Identifier: Apache-2.0
#include "dump/value.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace msprobe::dump_value_test {

using namespace msprobe::dump;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ValueClass class_of(std::string_view text) {
  TextPool pool;
  return classify(RecordedValue::of_text(pool.intern(text)), pool).type;
}

}  // namespace

TEST_CASE("values print as Python prints them") {
  TextPool pool;
  CHECK(to_text(RecordedValue::missing(), pool) == "N/A");
  CHECK(to_text(RecordedValue{}, pool) == "None");
  CHECK(to_text(RecordedValue::of(true), pool) == "True");
  CHECK(to_text(RecordedValue::of(false), pool) == "False");
  CHECK(to_text(RecordedValue::of(std::int64_t{3}), pool) == "3");
  CHECK(to_text(RecordedValue::of(std::numeric_limits<std::int64_t>::min()), pool) == "-9223372036854775808");
  CHECK(to_text(RecordedValue::of(3.0), pool) == "3.0");
  CHECK(to_text(RecordedValue::of(-0.0), pool) == "-0.0");
  CHECK(to_text(RecordedValue::of(1e-5), pool) == "1e-05");
  CHECK(to_text(RecordedValue::of(1e16), pool) == "1e+16");
  CHECK(to_text(RecordedValue::of(kInfinity), pool) == "inf");
  CHECK(to_text(RecordedValue::of(-kInfinity), pool) == "-inf");
}

TEST_CASE("NaN has one spelling, whatever the dump says") {
  TextPool pool;
  CHECK(to_text(RecordedValue::of(std::nan("")), pool) == "Nan");
  for (const char* text : {"nan", "NaN", "NAN", "Nan"}) {
    CHECK(to_text(RecordedValue::of_text(pool.intern(text)), pool) == "Nan");
  }
  CHECK(to_text(RecordedValue::of_text(pool.intern("nano")), pool) == "nano");
  CHECK(to_text(RecordedValue::of_text(pool.intern("na")), pool) == "na");
}

TEST_CASE("classes of values") {
  const TextPool pool;
  CHECK(classify(RecordedValue::missing(), pool).type == ValueClass::missing);
  CHECK(classify(RecordedValue{}, pool).type == ValueClass::other);
  CHECK(classify(RecordedValue::of(true), pool).type == ValueClass::other);
  CHECK(classify(RecordedValue::of(2.5), pool).type == ValueClass::number);
  CHECK(classify(RecordedValue::of(std::nan("")), pool).type == ValueClass::nan);
  CHECK(classify(RecordedValue::of(kInfinity), pool).type == ValueClass::inf);
  CHECK(classify(RecordedValue::of(-kInfinity), pool).type == ValueClass::neg_inf);
  const Classified big = classify(RecordedValue::of(std::int64_t{9007199254740993}), pool);
  CHECK(big.type == ValueClass::number);
  CHECK(big.is_integer);
  CHECK(big.integer == 9007199254740993);
}

TEST_CASE("classes of texts") {
  CHECK(class_of("2.5") == ValueClass::number);
  CHECK(class_of(" -3 ") == ValueClass::number);
  CHECK(class_of("100000000000000000000") == ValueClass::number);
  CHECK(class_of("nan") == ValueClass::nan);
  CHECK(class_of("Inf") == ValueClass::inf);
  CHECK(class_of("-infinity") == ValueClass::neg_inf);
  CHECK(class_of("N/A") == ValueClass::missing);
  CHECK(class_of("npu:0") == ValueClass::device);
  CHECK(class_of("CUDA") == ValueClass::device);
  CHECK(class_of("on the Cpu") == ValueClass::device);
  for (const char* text : {"", "sum", "None", "True", "1,5", "0x10", "[0, 1]", "1e5 x"}) {
    INFO(text);
    CHECK(class_of(text) == ValueClass::other);
  }
}

TEST_CASE("statistics keep their values whatever their kinds") {
  StatisticValues statistics;
  for (std::size_t i = 0; i < kStatistics; ++i) CHECK(statistics[i].kind == ValueKind::none);
  TextPool pool;
  statistics.set(kMax, RecordedValue::of(-0.0));
  statistics.set(kMin, RecordedValue::of(std::numeric_limits<std::int64_t>::min()));
  statistics.set(kMean, RecordedValue::of(true));
  statistics.set(kNorm, RecordedValue::of_text(pool.intern("nAn")));
  CHECK(to_text(statistics[kMax], pool) == "-0.0");
  CHECK(to_text(statistics[kMin], pool) == "-9223372036854775808");
  CHECK(to_text(statistics[kMean], pool) == "True");
  CHECK(to_text(statistics[kNorm], pool) == "Nan");
  statistics.fill(RecordedValue::missing());
  CHECK(to_text(statistics[kNorm], pool) == "N/A");
}

}  // namespace msprobe::dump_value_test
