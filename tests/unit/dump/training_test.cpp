// SPDX-License-Identifier: Apache-2.0
#include "dump/training.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace msprobe::dump {
namespace {

using Steps = std::vector<std::vector<std::string>>;  // the parameters of each step

Training training(const Steps& steps, const std::string& name = "AdamW") {
  Training made;
  for (const auto& parameters : steps)
    made.optimizers.push_back({name, "torch.optim", {{{}, "", parameters, {}}}});
  return made;
}

/// The number of steps of both sides after they were joined.
std::vector<std::size_t> steps_after(Training one, Training other) {
  join_steps(one, other);
  return {one.optimizers.size(), other.optimizers.size()};
}

}  // namespace

TEST_CASE("optimizers that share out the parameters make one step together") {
  Training two = training({{"a", "b"}, {"c"}});
  Training one = training({{"a", "b", "c"}});
  join_steps(two, one);
  REQUIRE(two.optimizers.size() == 1);
  REQUIRE(two.optimizers[0].groups.size() == 2);
  CHECK(two.optimizers[0].groups[1].parameters == std::vector<std::string>{"c"});
  CHECK(one.optimizers.size() == 1);
  // A parameter that one side leaves out does not change that.
  CHECK(steps_after(training({{"a"}, {"c"}}), training({{"a", "b", "c"}})) == std::vector<std::size_t>{1, 1});
}

TEST_CASE("steps that one side lacks, repeats or makes by other classes stay apart") {
  const Training golden = training({{"a"}, {"b"}});
  CHECK(steps_after(training({{"a"}}), golden) == std::vector<std::size_t>{1, 2});
  CHECK(steps_after(golden, training({{"b"}, {"a"}})) == std::vector<std::size_t>{2, 2});
  CHECK(steps_after(training({{"a"}, {"b"}, {"b"}}), training({{"a", "b"}})) ==
        std::vector<std::size_t>{3, 1});
  CHECK(steps_after(training({{"a"}, {""}}), training({{"a", "b"}})) == std::vector<std::size_t>{2, 1});
  Training mixed = training({{"a"}, {"b"}});
  mixed.optimizers[1].name = "SGD";
  CHECK(steps_after(mixed, training({{"a", "b"}})) == std::vector<std::size_t>{2, 1});
  CHECK(steps_after(Training(), golden) == std::vector<std::size_t>{0, 2});
}

}  // namespace msprobe::dump
