// SPDX-License-Identifier: Apache-2.0
// Differences inside of a module whose outputs and gradients are the same.
#include "diagnosis/equivalent_modules.hpp"

#include <doctest/doctest.h>

#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::equivalent_modules_test {
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::modules_of;
using testing::no_evidence;
using testing::rough;
using testing::tensor;
using testing::Two;

const testing::Construct kInRotary = modules_of({
    {"Tensor.cos.0.forward", "Module.rotary.Rotary.forward.0"},
    {"Tensor.__mul__.0.forward", "Module.rotary.Rotary.forward.0"},
    {"Tensor.polar.0.forward", "Module.rotary.Rotary.forward.0"},
    {"Module.rotary.Rotary.forward.0", ""},
    {"Module.rotary.Rotary.backward.0", ""},
    {"Functional.linear.0.forward", "Module.proj.Linear.forward.0"},
    {"Module.proj.Linear.forward.0", ""},
});

/// The errors in the results of a module of another spelling: its output, the gradient of its input, that of
/// a parameter.
struct HandedOn {
  double output = 1e-7;
  double gradient = 1e-7;
  double parameter = 1e-7;
};

/// A table of half the width is multiplied in one run, a wide one in golden.
Two spelled_otherwise(const HandedOn& target, const std::string& dtype = "torch.float32") {
  constexpr std::string_view kTrained = R"(, "requires_grad": true)";
  const auto same = [&](double size) { return tensor(size, "[4, 64]", dtype, kTrained); };
  const auto off = [&](double size, double error) { return rough(size, error, "[4, 64]", dtype, kTrained); };
  const std::string weight = tensor(0.1, "[64, 64]", dtype);
  Two two;
  two.forward("Tensor.cos.0.forward", {tensor(0.5, "[4, 32]", dtype)}, {tensor(0.7, "[4, 32]", dtype)},
              {same(0.6)}, {same(0.8)});
  two.forward("Tensor.__mul__.0.forward", {same(1), tensor(0.7, "[4, 32]", dtype)}, {off(2, target.output)},
              {same(1), same(0.8)}, {same(2)});
  two.forward("Module.rotary.Rotary.forward.0", {same(1)}, {off(2, target.output)}, {same(1)}, {same(2)});
  two.forward("Functional.linear.0.forward", {off(2, target.output), weight}, {off(3, target.output)},
              {same(2), weight}, {same(3)});
  two.forward("Module.proj.Linear.forward.0", {off(2, target.output)}, {off(3, target.output)}, {same(2)},
              {same(3)});
  two.backward("Module.rotary.Rotary.backward.0", {same(5)}, {off(6, target.gradient)}, {same(5)}, {same(6)});
  two.target.gradients("Module.rotary.Rotary.parameters_grad.0",
                       {"\"weight\": [" + off(7, target.parameter) + "]"});
  two.golden.gradients("Module.rotary.Rotary.parameters_grad.0", {"\"weight\": [" + same(7) + "]"});
  return two;
}

TEST_CASE("another way to what a module hands on is a hint") {
  const RankDiagnosis rank = diagnosed(spelled_otherwise({}), {}, kInRotary);
  CHECK(no_evidence(rank));
  CHECK(rank.counts[static_cast<std::size_t>(Origin::unexplained)] == 0);
  CHECK(first(rank).entry == "Tensor.cos.0.forward");
  CHECK(first(rank).text.ends_with("; the output of rotary is the same"));
}

TEST_CASE("the same forward is not enough") {
  HandedOn wrong;
  SUBCASE("output") {
    wrong.output = 0.1;
  }
  SUBCASE("gradient of the input") {
    wrong.gradient = 0.1;
  }
  SUBCASE("gradient of a parameter") {
    wrong.parameter = 0.1;
  }
  const RankDiagnosis rank = diagnosed(spelled_otherwise(wrong), {}, kInRotary);
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).entry == "Tensor.cos.0.forward");
}

/// A model of one layer, and beside it a loss of a bare parameter, as the temperature of a policy. The
/// gradient of that loss arrives with `sign`, and so does that of the parameter at the optimizer.
Two with_bare_parameter(int sign) {
  const auto scalar = [](double value) {
    const std::string text = std::to_string(value);
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], "Max": )" + text +
           R"(, "Min": )" + text + R"(, "Mean": )" + text + R"(, "Norm": )" + text + "}";
  };
  const std::string gap = tensor(0.3, "[8]");
  Two two;
  for (DumpText* const side : {&two.target, &two.golden}) {
    const double one = side == &two.target ? sign : 1;
    side->forward("Module.proj.Linear.forward.0", {tensor(1)}, {tensor(2)});
    side->forward("Tensor.mean.0.forward", {gap}, {scalar(0.01)});
    side->backward("Tensor.mean.0.backward", {scalar(one)}, {tensor(one / 8, "[8]")});
    side->backward("Module.proj.Linear.backward.0", {tensor(5)}, {tensor(6)});
    side->gradients("Module.proj.Linear.parameters_grad.0", {"\"weight\": [" + tensor(7) + "]"});
    side->forward("Tensor.lerp_.0.forward", {scalar(0.5), scalar(4 * one)}, {scalar(0.5 + one)});
    side->training = R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": [null],
        "gradient_norms": [4]}]}]})";
  }
  return two;
}

TEST_CASE("the gradient of a parameter in no module has a sign") {
  CHECK(diagnosed(with_bare_parameter(1)).evidence == 0);
  const RankDiagnosis rank = diagnosed(with_bare_parameter(-1));
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).entry == "Tensor.mean.0.backward");
}

TEST_CASE("parameters that one side lays together have the same squares together") {
  Two two = spelled_otherwise({});
  const auto gradient = [](double size) { return "\"weight\": [" + tensor(size, "[64, 64]") + "]"; };
  two.target.gradients("Module.rotary.both.Linear.parameters_grad.0", {gradient(5)});
  two.golden.gradients("Module.rotary.one.Linear.parameters_grad.0", {gradient(3)});
  double other = 4;
  SUBCASE("the same") {}
  SUBCASE("another") {
    other = 4.1;
  }
  two.golden.gradients("Module.rotary.other.Linear.parameters_grad.0", {gradient(other)});
  CHECK(no_evidence(diagnosed(two, {}, kInRotary)) == (other == 4));
}

TEST_CASE("a change of gradients after the backward is not another way to the same") {
  Two two = spelled_otherwise({});
  two.target.forward("Tensor.mul_.0.forward", {tensor(7)}, {tensor(4)});
  two.forward("Tensor.lerp_.0.forward", {tensor(9), tensor(4)}, {tensor(10)}, {tensor(9), tensor(7)},
              {rough(10, 0.3)});
  const RankDiagnosis rank = diagnosed(two, {}, kInRotary);
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).entry == "Tensor.mul_.0.forward");
}

TEST_CASE("a gradient that one side alone has is another one") {
  Two two = spelled_otherwise({});
  two.golden.gradients("Module.rotary.table.Table.parameters_grad.0", {"\"weight\": [" + tensor(7) + "]"});
  CHECK(first(diagnosed(two, {}, kInRotary)).is_evidence());
}

/// The table of `module` in the target, which golden uses without calling it: only the target has its
/// gradient.
Two used_without_module(bool has_backward) {
  constexpr std::string_view kTrained = R"(, "requires_grad": true)";
  const std::string table = tensor(0.3, "[9, 64]", "torch.float32", kTrained);
  const std::string ids = tensor(2, "[4]", "torch.int64");
  Two two;
  two.forward("Functional.embedding.0.forward", {ids, table}, {tensor(0.2)}, {ids, table}, {tensor(0.2)});
  two.target.forward("Module.rotary.table.Embedding.forward.0", {ids}, {tensor(0.2)}, {},
                     {testing::named("weight", table)});
  const Two rest = spelled_otherwise({});
  two.target.append(rest.target);
  two.golden.append(rest.golden);
  two.target.backward("Functional.embedding.0.backward", {tensor(0.4)}, {});
  if (has_backward) two.golden.backward("Functional.embedding.0.backward", {tensor(0.4)}, {});
  two.target.gradients("Module.rotary.table.Embedding.parameters_grad.0",
                       {testing::named("weight", tensor(7, "[9, 64]"))});
  return two;
}

TEST_CASE("a parameter that one side uses without calling its module has no recorded gradient there") {
  CHECK(no_evidence(diagnosed(used_without_module(true), {}, kInRotary)));
  CHECK(first(diagnosed(used_without_module(false), {}, kInRotary)).is_evidence());
}

TEST_CASE("single elements of half types are off by a rounding") {
  const std::string half = "torch.bfloat16";  // with a unit roundoff of 3.9e-3
  CHECK(no_evidence(diagnosed(spelled_otherwise({5e-3, 5e-3, 5e-3}, half), {}, kInRotary)));
  CHECK(first(diagnosed(spelled_otherwise({2e-2, 5e-3, 5e-3}, half), {}, kInRotary)).is_evidence());
}

TEST_CASE("what only modules take whose results are the same is another way") {
  // Positions are counted from one: a rotation of queries and keys that attention does not see.
  double output = 0;
  SUBCASE("the same result") {}
  SUBCASE("another result") {
    output = 0.1;
  }
  const auto angles = [](double size) {
    return tensor(size, "[64]", "torch.float32", R"(, "requires_grad": false)");
  };
  const auto trained = [](double size, double error) {
    return rough(size, error, "[4, 64]", "torch.float32", R"(, "requires_grad": true)");
  };
  Two two;
  two.forward("Tensor.cos.0.forward", {angles(0.6)}, {angles(0.7)}, {angles(0.5)}, {angles(0.8)});
  two.forward("Module.rotary.Rotary.forward.0", {angles(0.9)}, {angles(0.7)}, {angles(0.9)}, {angles(0.8)});
  two.forward("Tensor.__mul__.0.forward", {trained(1, 0), angles(0.7)}, {trained(2.1, 0)},
              {trained(1, 0), angles(0.8)}, {trained(2, 0)});
  two.forward("Module.attention.Attention.forward.0", {trained(1, 0)}, {trained(3, output)}, {trained(1, 0)},
              {trained(3, 0)});
  two.backward("Module.attention.Attention.backward.0", {trained(5, 0)}, {trained(6, 1.4e-7)},
               {trained(5, 0)}, {trained(6, 0)});
  for (testing::DumpText* side : {&two.target, &two.golden})
    side->gradients("Module.attention.Attention.parameters_grad.0", {"\"weight\": [" + tensor(7) + "]"});
  const auto modules = modules_of({{"Tensor.cos.0.forward", "Module.rotary.Rotary.forward.0"},
                                   {"Module.rotary.Rotary.forward.0", ""},
                                   {"Tensor.__mul__.0.forward", "Module.attention.Attention.forward.0"},
                                   {"Module.attention.Attention.forward.0", ""},
                                   {"Module.attention.Attention.backward.0", ""}});
  const RankDiagnosis rank = diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  CHECK(no_evidence(rank) == (output == 0));
}

}  // namespace msprobe::diagnosis::equivalent_modules_test
