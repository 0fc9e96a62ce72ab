// SPDX-License-Identifier: Apache-2.0
// Values that unrecorded code hands on: selected rows, exchanged halves, sums that cancel, masks.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::unrecorded_values_test {
using testing::Construct;
using testing::construct_of;
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::is_one_cause;
using testing::modules_of;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;

const std::string weight = tensor(0.1, "[64, 64]");

/// A router whose weights golden divides by their sum; experts run before an unrecorded index selects rows of
/// the weights. `selected` and `theirs` are what is selected.
Two experts(double selected, double theirs) {
  Two two;
  const auto both = [&](const std::string& name, const testing::Texts& inputs, const std::string& out) {
    two.forward(name, inputs, {out}, inputs, {out});
  };
  both("Functional.linear.0.forward", {tensor(1), weight}, tensor(2));
  both("Functional.softmax.0.forward", {tensor(2)}, tensor(0.2));
  two.golden.forward("Tensor.sum.0.forward", {tensor(0.2)}, {tensor(0.5, "[4, 1]")});
  two.golden.forward("Tensor.__truediv__.0.forward", {tensor(0.2), tensor(0.5, "[4, 1]")}, {tensor(0.4)});
  for (int i = 1; i <= 12; ++i)
    both("Functional.linear." + std::to_string(i) + ".forward", {tensor(1 + i), weight}, tensor(2 + i));
  two.forward("Tensor.__mul__.0.forward", {tensor(14), tensor(selected, "[2, 64]")}, {tensor(14 * selected)},
              {tensor(14), tensor(theirs, "[2, 64]")}, {tensor(14 * theirs)});
  two.forward("Module.moe.Mixture.forward.0", {tensor(1)}, {tensor(14 * selected)}, {tensor(1)},
              {tensor(14 * theirs)});
  return two;
}

TEST_CASE("a value that unrecorded code selects from a call of golden alone leads back to the call") {
  const auto compared = [](const Two& two) {
    return diagnosed(
        two, [](testing::Asked& asked) { asked.rank.golden_construct = asked.rank.target_construct; },
        modules_of({{"Tensor.sum.0.forward", "Module.moe.Mixture.forward.0"},
                    {"Tensor.__truediv__.0.forward", "Module.moe.Mixture.forward.0"},
                    {"Tensor.__mul__.0.forward", "Module.moe.Mixture.forward.0"}}));
  };
  const RankDiagnosis wrong = compared(experts(0.15, 0.35));
  CHECK(first(wrong).kind == Kind::removed);
  CHECK(first(wrong).entry == "Tensor.sum.0.forward");
  CHECK(first(wrong).text.find("golden runs Tensor.sum, Tensor.__truediv__ here") != std::string::npos);
  CHECK(is_one_cause(wrong));
  CHECK(no_evidence(compared(experts(0.15, 0.15))));
  // Elements outside of the output's range are not its own.
  CHECK(first(compared(experts(0.15, 0.9))).entry == "Tensor.__mul__.0.forward");
}

TEST_CASE("a difference that is exactly zero on one side is as large as the errors of its operands") {
  const std::string half = "torch.bfloat16";
  const auto compared = [&](double left, double error) {
    const std::string ours = rough(2, error, "[4, 64]", half);
    const std::string theirs = tensor(2, "[4, 64]", half);
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1), weight}, {ours}, {tensor(1), weight}, {theirs});
    two.forward("Tensor.__sub__.0.forward", {ours, tensor(2)}, {tensor(left)}, {theirs, tensor(2)},
                {tensor(0)});
    return diagnosed(two);
  };
  CHECK(no_evidence(compared(0.004, 0.004)));
  const RankDiagnosis wrong = compared(0.5, 0.004);
  CHECK(first(wrong).entry == "Tensor.__sub__.0.forward");
  CHECK(first(wrong).text.find("golden is exactly 0") != std::string::npos);
}

TEST_CASE("a large negative number hides other differences, which the next evidence says") {
  const auto masked = [](double size) {
    std::string text = tensor(size);
    const auto put = [&](const std::string& key, const std::string& value) {
      const std::size_t at = text.find(key) + key.size();
      text.replace(at, text.find_first_of(",}", at) - at, value);
    };
    put("\"Min\": ", "-1000000000.0");
    put("\"Mean\": ", "-250000000.0");
    put("\"Norm\": ", "8000000000.0");
    return text;
  };
  Two two;
  two.forward("Tensor.masked_fill.0.forward", {tensor(1)}, {masked(1)}, {tensor(1)}, {masked(1)});
  two.forward("Functional.cross_entropy.0.forward", {masked(1)}, {tensor(0.5, "[]")}, {masked(1)},
              {tensor(0.4, "[]")});
  CHECK(first(diagnosed(two)).text.find("input.0 contains -1e+09, which hides other differences") !=
        std::string::npos);
}

TEST_CASE("halves that a view exchanges") {
  const std::string module = "Module.attention.Rotary.forward.0";
  const auto compared = [&](double turned) {
    Two two;
    const auto both = [&](const std::string& name, const testing::Texts& inputs, const std::string& out) {
      two.forward(name, inputs, {out}, inputs, {out});
    };
    both("Functional.linear.0.forward", {tensor(1), weight}, tensor(2));
    both("Tensor.__mul__.0.forward", {tensor(2), tensor(0.7)}, tensor(1.4));
    two.forward("Tensor.__mul__.1.forward", {tensor(turned), tensor(0.6)}, {tensor(0.6 * turned)},
                {tensor(2.1), tensor(0.6)}, {tensor(0.6 * 2.1)});
    two.forward(module, {tensor(1)}, {tensor(9)}, {tensor(1)}, {tensor(9)});
    return diagnosed(two, {},
                     modules_of({{"Functional.linear.0.forward", module},
                                 {"Tensor.__mul__.0.forward", module},
                                 {"Tensor.__mul__.1.forward", module}}));
  };
  CHECK(no_evidence(compared(2.1)));
  const RankDiagnosis wrong = compared(2.4);
  CHECK(first(wrong).entry == "Tensor.__mul__.1.forward");
  CHECK(first(wrong).text.find("the last recorded call before it there is Tensor.__mul__.0.forward") !=
        std::string::npos);
  CHECK(first(wrong).next.find("risk_level ALL (adds cat, stack, chunk, transpose)") != std::string::npos);
}

TEST_CASE("a position bias that other operations build, and a boolean that differs") {
  const auto compared = [](int bucket, const std::string& bias) {
    const auto integers = [](int largest) {
      return R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4, 64], "Max": )" +
             std::to_string(largest) + R"(, "Min": 0, "Mean": null, "Norm": null})";
    };
    Two two;
    two.target.forward("Torch.sub.0.forward", {integers(11), integers(11)}, {integers(12)});
    two.target.forward("Torch.mul.0.forward", {integers(12), scalar("int", "4")}, {integers(bucket)});
    two.golden.forward("Tensor.__sub__.0.forward", {integers(11), integers(11)}, {integers(12)});
    two.golden.forward("Tensor.__mul__.0.forward", {integers(12), scalar("int", "4")}, {integers(7)});
    two.forward("Functional.embedding.0.forward", {integers(bucket), weight, scalar("bool", "false")}, {bias},
                {integers(7), weight, scalar("bool", "true")}, {tensor(0.5)});
    two.forward("Tensor.__add__.0.forward", {tensor(3), bias}, {bias == tensor(0.5) ? tensor(4) : tensor(5)},
                {tensor(3), tensor(0.5)}, {tensor(4)});
    return diagnosed(two);
  };
  CHECK(no_evidence(compared(7, tensor(0.5))));
  CHECK(first(compared(6, tensor(0.8))).kind == Kind::exchanged);
}

TEST_CASE("a product that one side computes earlier is at another place") {
  const auto side = [](bool early, double factor, const std::string& shape) {
    testing::DumpText text;
    const auto product = [&] {
      text.forward("Tensor.__mul__.0.forward", {tensor(factor, "[4, 1]"), tensor(2, shape)},
                   {tensor(factor * 2, shape)});
    };
    text.forward("Torch.sigmoid.0.forward", {tensor(8, "[4, 1]")}, {tensor(0.3, "[4, 1]")});
    if (early) product();
    text.forward("Torch.exp.0.forward", {tensor(0.3, "[4, 1]")}, {tensor(0.4, "[4, 1]")});
    text.forward("Torch.log1p.0.forward", {tensor(0.4, "[4, 1]")}, {tensor(0.5, "[4, 1]")});
    text.forward("Torch.sin.0.forward", {tensor(0.5, "[4, 1]")}, {tensor(0.7, "[4, 1]")});
    if (!early) product();
    text.forward("Tensor.__add__.0.forward", {tensor(factor * 2), tensor(5)}, {tensor(factor * 2 + 5)});
    // Calls pair in their order only where the runs make other calls.
    text.forward(early ? "Tensor.abs.0.forward" : "Torch.abs.0.forward", {tensor(6)}, {tensor(9)});
    return text;
  };
  const RankDiagnosis wrong =
      diagnosed({.target = side(true, 0.3, "[4, 64]"), .golden = side(false, 0.7, "[8, 32]")});
  CHECK(first(wrong).is_evidence());
  CAPTURE(first(wrong).text);
  CHECK(first(wrong).text.find("at another place, as Tensor.__mul__.0.forward") != std::string::npos);
  CHECK(
      no_evidence(diagnosed({.target = side(true, 0.7, "[4, 64]"), .golden = side(false, 0.7, "[8, 32]")})));
}

}  // namespace msprobe::diagnosis::unrecorded_values_test
