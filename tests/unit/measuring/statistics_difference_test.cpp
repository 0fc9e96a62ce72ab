// SPDX-License-Identifier: Apache-2.0
#include "measuring/statistics_difference.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace msprobe::compare_statistics_difference_test {

using namespace msprobe::measuring;
using namespace msprobe;
using dump::RecordedValue;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Cells {
  std::string difference;
  std::string relative;
  bool operator==(const Cells&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Cells& cells) {
  return out << cells.difference << ", " << cells.relative;
}

struct Pools {
  TextPool target;
  TextPool golden;
  Cells cells(const RecordedValue& npu, const RecordedValue& bench, bool python = false) const {
    const ValueDifference result =
        difference(npu, target, bench, golden, python ? python_rules() : PythonRules());
    return {report::plain_text(difference_cell(result)), report::plain_text(relative_cell(result))};
  }
};

Cells numbers(double npu, double bench, bool python = false) {
  return Pools{}.cells(RecordedValue::of(npu), RecordedValue::of(bench), python);
}

Cells integers(std::int64_t npu, std::int64_t bench, bool python = false) {
  return Pools{}.cells(RecordedValue::of(npu), RecordedValue::of(bench), python);
}

}  // namespace

TEST_CASE("classes of both sides decide what the cells say") {
  Pools pools;
  // The first of each pair stands on the target's side, the second on the reference's; they are never equal
  // as text, so that the table decides.
  struct Class {
    RecordedValue npu;
    RecordedValue bench;
  };
  const std::array<Class, 7> classes = {{
      {RecordedValue::of(2.0), RecordedValue::of(4.0)},
      {RecordedValue::of(std::nan("")), RecordedValue::of_text(pools.golden.intern("nAn"))},
      {RecordedValue::of(kInfinity), RecordedValue::of_text(pools.golden.intern("Infinity"))},
      {RecordedValue::of(-kInfinity), RecordedValue::of_text(pools.golden.intern("-Infinity"))},
      {RecordedValue::of_text(pools.target.intern("npu:0")),
       RecordedValue::of_text(pools.golden.intern("cuda:0"))},
      {RecordedValue::missing(), RecordedValue::missing()},
      {RecordedValue{}, RecordedValue::of(true)},
  }};
  // NUM, NAN, INF, NEG_INF, DEVICE, NA, OTHER; "=" where both print the same and the table has no say.
  const char* const expected[7][7] = {
      {"number", "Nan", "-inf", "inf", "Diff", "N/A", "Diff"},
      {"Nan", "=", "Nan", "Nan", "Diff", "N/A", "Diff"},
      {"inf", "Nan", "=", "inf", "Diff", "N/A", "Diff"},
      {"-inf", "Nan", "-inf", "=", "Diff", "N/A", "Diff"},
      {"Diff", "Diff", "Diff", "Diff", "N/A", "N/A", "Diff"},
      {"N/A", "N/A", "N/A", "N/A", "N/A", "=", "N/A"},
      {"Diff", "Diff", "Diff", "Diff", "Diff", "N/A", "Diff"},
  };
  for (const bool python : {false, true}) {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      for (std::size_t j = 0; j < classes.size(); ++j) {
        CAPTURE(i);
        CAPTURE(j);
        const std::string want = expected[i][j];
        const Cells cells = pools.cells(classes[i].npu, classes[j].bench, python);
        if (want == "=") continue;
        if (want == "number") {
          CHECK(cells == Cells{"-2.0", "50.0%"});
        } else {
          CHECK(cells == Cells{want, want});
        }
      }
    }
  }
}

TEST_CASE("what prints the same has no difference") {
  Pools pools;
  const auto same = [&](const RecordedValue& npu, const RecordedValue& bench) {
    for (const bool python : {false, true}) CHECK(pools.cells(npu, bench, python) == Cells{"0", "0"});
  };
  same(RecordedValue::of(2.5), RecordedValue::of(2.5));
  same(RecordedValue::of(std::nan("")), RecordedValue::of(-std::nan("")));
  same(RecordedValue::of(std::nan("")), RecordedValue::of_text(pools.golden.intern("NaN")));
  same(RecordedValue::of(kInfinity), RecordedValue::of(kInfinity));
  same(RecordedValue::of(kInfinity), RecordedValue::of_text(pools.golden.intern("inf")));
  same(RecordedValue{}, RecordedValue{});
  same(RecordedValue{}, RecordedValue::of_text(pools.golden.intern("None")));
  same(RecordedValue::missing(), RecordedValue::missing());
  same(RecordedValue::of(true), RecordedValue::of(true));
  same(RecordedValue::of(std::int64_t{7}), RecordedValue::of_text(pools.golden.intern("7")));
  same(RecordedValue::of_text(pools.target.intern("npu:0")),
       RecordedValue::of_text(pools.golden.intern("npu:0")));
}

TEST_CASE("numbers: the examples of the manual") {
  CHECK(numbers(2.5, -4.0) == Cells{"6.5", "162.5%"});
  CHECK(Pools{}.cells(RecordedValue::of(2.5), RecordedValue::of(std::int64_t{3})) ==
        Cells{"-0.5", "16.666666666666664%"});
  CHECK(numbers(0.0, 2.5) == Cells{"-2.5", "100.0%"});
  CHECK(numbers(2.5, 0.0) == Cells{"2.5", "inf"});
  CHECK(numbers(1.1, 1.0) == Cells{"0.10000000000000009", "10.000000000000009%"});
}

TEST_CASE("equal numbers of different spelling: equal by our rules, infinitely off by Python's") {
  CHECK(numbers(0.0, -0.0) == Cells{"0", "0"});
  CHECK(numbers(-0.0, 0.0) == Cells{"0", "0"});
  CHECK(numbers(0.0, -0.0, true) == Cells{"0.0", "inf"});
  CHECK(numbers(-0.0, 0.0, true) == Cells{"-0.0", "inf"});
  const RecordedValue one = RecordedValue::of(std::int64_t{1});
  CHECK(Pools{}.cells(one, RecordedValue::of(1.0)) == Cells{"0", "0"});
  CHECK(Pools{}.cells(one, RecordedValue::of(1.0), true) == Cells{"0.0", "0.0%"});
}

TEST_CASE("integers are exact") {
  for (const bool python : {false, true}) {
    CHECK(integers(3, 5, python) == Cells{"-2", "40.0%"});
    CHECK(integers(5, 0, python) == Cells{"5", "inf"});
    // Their difference does not fit: it becomes a real number instead of wrapping around.
    CHECK(integers(INT64_MAX, INT64_MIN, python) == Cells{"1.8446744073709552e+19", "200.0%"});
  }
  CHECK(integers(9007199254740993, 9007199254740992).difference == "1");
}

TEST_CASE("integers beyond 64 bits are compared as numbers") {
  Pools pools;
  CHECK(pools.cells(RecordedValue::of_text(pools.target.intern("200000000000000000000")),
                    RecordedValue::of_text(pools.golden.intern("100000000000000000000"))) ==
        Cells{"1e+20", "100.0%"});
}

TEST_CASE("the largest numbers overflow to infinity, not to nonsense") {
  CHECK(numbers(1.7e308, -1.7e308) == Cells{"inf", "inf%"});
}

TEST_CASE("relative errors as the rules take them") {
  const auto fraction = [](const RecordedValue& npu, const RecordedValue& bench) {
    const TextPool pool;
    return relative_fraction(difference(npu, pool, bench, pool, {}));
  };
  CHECK(fraction(RecordedValue::of(1.0), RecordedValue::of(1.0)) == 0);
  CHECK(fraction(RecordedValue::of(1.5), RecordedValue::of(1.0)) == 0.5);
  CHECK(fraction(RecordedValue::of(1.0), RecordedValue::of(0.0)) == kInfinity);
  CHECK(fraction(RecordedValue::of(kInfinity), RecordedValue::of(1.0)) == kInfinity);
  CHECK(fraction(RecordedValue::of(1.0), RecordedValue::of(kInfinity)) == kInfinity);
  CHECK(std::isnan(fraction(RecordedValue::of(1.0), RecordedValue::of(std::nan("")))));
  CHECK(std::isnan(fraction(RecordedValue::of(1.0), RecordedValue{})));
  CHECK(std::isnan(fraction(RecordedValue::missing(), RecordedValue::of(1.0))));
}

}  // namespace msprobe::compare_statistics_difference_test
