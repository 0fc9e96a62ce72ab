// SPDX-License-Identifier: Apache-2.0
#include "support/coverage.hpp"

#include <doctest/doctest.h>

namespace msprobe::support_coverage_test {

using namespace msprobe;

TEST_CASE("only all is 100 percent") {
  Coverage coverage;
  CHECK(coverage.percent() == "0 %");
  CHECK(!coverage.is_complete());
  coverage.compared = 185;
  CHECK(coverage.is_complete());
  CHECK(coverage.percent() == "100 %");
  coverage.miss("it is NaN in both runs", "Torch.a.0.forward.output.0", 797);
  CHECK(coverage.percent() == "18 %");
  coverage.compared = 1'000'000;
  coverage.gaps.front().count = 1;
  CHECK(coverage.percent() == "99 %");
  CHECK(!coverage.is_complete());
  coverage.compared = 1;
  coverage.gaps.front().count = 1'000'000;
  CHECK(coverage.percent() == "0.00009 %");
}

TEST_CASE("explained things do not count for the share") {
  Coverage coverage;
  coverage.compared = 1;
  coverage.explained = 99;
  coverage.miss("only one side has it", "x");
  CHECK(coverage.share() == 0.5);
  CHECK(coverage.asked() == 101);
}

TEST_CASE("what was not compared, by reasons") {
  Coverage coverage;
  CHECK(coverage.text("tensors") == "there are no tensors to compare");
  coverage.miss("it is NaN in both runs", "a");
  CHECK(coverage.text("tensors") == "1 of 1 tensors was not compared: it is NaN in both runs, a");
  coverage = Coverage();
  coverage.explained = 2;
  CHECK(coverage.text("tensors") == "none of 2 tensors was compared: there is nothing to compare in them");
  coverage.miss("it is NaN in both runs", "a");
  CHECK(coverage.text("tensors") == "none of 3 tensors was compared: it is NaN in both runs, a");
  coverage.compared = 1'000;
  Coverage other;
  other.miss("only one side has it", "b", 2);
  other.miss("it is NaN in both runs", "c");
  coverage.add(other);
  CHECK(coverage.text("tensors") ==
        "4 of 1,006 tensors were not compared: 2 because it is NaN in both runs, first a; 2 because only one "
        "side has it, first b");
  other = Coverage();
  other.compared = 1;
  CHECK(other.text("tensors").empty());
}

}  // namespace msprobe::support_coverage_test
