// SPDX-License-Identifier: Apache-2.0
// Calls in another order, and a step that one side did not finish.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"
#include "support/text.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::order_of_calls_test {
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::modules_of;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Texts;
using testing::Two;

namespace {

enum class Average { after, after_backward, before_backward };

/// A layer, its gradients, the update of its weight from 1 to 1.1, and an average of weights.
void step(DumpText& side, Average when) {
  const std::string old_weight = tensor(1, "[64, 64]");
  const std::string weight = tensor(1.1, "[64, 64]");
  const bool after = when == Average::after;
  const auto average = [&] {
    side.forward("Tensor.mul_.0.forward", {tensor(0.8, "[64, 64]")}, {tensor(0.72, "[64, 64]")});
    side.forward("Tensor.add_.0.forward", {tensor(0.72, "[64, 64]"), after ? weight : old_weight},
                 {tensor(after ? 0.83 : 0.82, "[64, 64]")});
  };
  side.forward("Functional.linear.0.forward", {tensor(5), old_weight}, {tensor(6)});
  side.forward("Module.fc.Linear.forward.0", {tensor(5)}, {tensor(6)}, {},
               {testing::named("weight", old_weight)});
  if (when == Average::before_backward) average();
  side.backward("Functional.linear.0.backward", {tensor(7)}, {tensor(8)});
  side.backward("Module.fc.Linear.backward.0", {tensor(7)}, {tensor(8)});
  side.gradients("Module.fc.Linear.parameters_grad.0", {"\"weight\": [" + tensor(9, "[64, 64]") + "]"});
  if (when == Average::after_backward) average();
  side.forward("Tensor.addcdiv_.0.forward", {old_weight, tensor(9, "[64, 64]")}, {weight});
  if (after) average();
}

}  // namespace

TEST_CASE("a second pass through a graph comes after the loss") {
  // The gradient of an energy is a force; the loss of both sends a gradient through the graph once more,
  // whose values stand where the first pass was.
  const auto run = [](double scale, double kernel) {
    Two two;
    const auto step = [](DumpText& side, double factor, double back) {
      side.forward("Functional.linear.0.forward", {tensor(1)}, {tensor(2)});
      side.forward("Tensor.square.0.forward", {tensor(2)}, {tensor(3)});
      side.backward("Tensor.square.0.backward", {tensor(4 * factor)}, {tensor(5 * factor)});
      side.backward("Functional.linear.0.backward", {tensor(6 * factor)}, {tensor(7 * factor * back)});
      side.forward("Tensor.__sub__.0.forward", {tensor(8)}, {tensor(9)});
      side.forward("Tensor.__mul__.0.forward", {tensor(3), scalar("float", python_repr(factor))},
                   {tensor(3 * factor)});
      side.backward("Tensor.__mul__.0.backward", {tensor(0.5)}, {tensor(4 * factor)});
    };
    step(two.target, scale, kernel);
    step(two.golden, 1, 1);
    return diagnosed(two);
  };
  CHECK(no_evidence(run(1, 1)));
  const RankDiagnosis rank = run(2, 1);
  CHECK(first(rank).entry == "Tensor.__mul__.0.forward");
  CHECK(testing::is_one_cause(rank));
  CHECK(first(run(1, 1.1)).entry == "Functional.linear.0.backward");
}

TEST_CASE("a normalization before or after the residual") {
  const std::string weight = tensor(0.1, "[64, 64]");
  // A residual around each of two layers; their names show that n1 and n2 are of one class.
  const auto norm = [](DumpText& side, int number, double in, double out) {
    const std::string call = std::to_string(number);
    side.forward("Functional.layer_norm." + call + ".forward", {tensor(in)}, {tensor(out)});
    side.forward("Module.n" + call + ".LayerNorm.forward.0", {tensor(in)}, {tensor(out)});
  };
  const auto layer = [&](DumpText& side, int number, double in, double out, double residual, double sum) {
    const std::string call = std::to_string(number);
    side.forward("Functional.linear." + call + ".forward", {tensor(in), weight}, {tensor(9 * in)});
    side.forward("Functional.gelu." + call + ".forward", {tensor(9 * in)}, {tensor(8 * in)});
    side.forward("Functional.dropout." + call + ".forward", {tensor(8 * in)}, {tensor(out)});
    side.forward("Tensor.__add__." + call + ".forward", {tensor(residual), tensor(out)}, {tensor(sum)});
  };
  const std::string table = tensor(7, "[40, 64]");
  DumpText before;
  before.forward("Functional.embedding.0.forward", {table}, {tensor(1)});
  norm(before, 0, 1, 2);
  layer(before, 0, 2, 3, 1, 4);
  norm(before, 1, 4, 5);
  layer(before, 1, 5, 6, 4, 7);
  DumpText after;
  after.forward("Functional.embedding.0.forward", {table}, {tensor(1)});
  layer(after, 0, 1, 3.3, 1, 4.3);
  norm(after, 0, 4.3, 4.6);
  layer(after, 1, 4.6, 6.4, 4.6, 7.7);
  norm(after, 1, 7.7, 8);
  const auto modules = modules_of({{"Functional.layer_norm.0.forward", "Module.n0.LayerNorm.forward.0"},
                                   {"Functional.layer_norm.1.forward", "Module.n1.LayerNorm.forward.0"}});
  Two two;
  two.target = before;
  two.golden = after;
  const RankDiagnosis rank = diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  CHECK(first(rank).entry == "Functional.layer_norm.0.forward");
  CHECK(first(rank).text.starts_with(
      "runs Functional.layer_norm here, golden at another place, as Functional.layer_norm.0.forward; "));
}

TEST_CASE("an average of weights before the optimizer") {
  const auto with = [](Average when) {
    Two two;
    step(two.target, when);
    step(two.golden, Average::after);
    return diagnosed(two, {},
                     modules_of({{"Tensor.addcdiv_.0.forward", "optimizer"},
                                 {"Functional.linear.0.forward", "Module.fc.Linear.forward.0"}}));
  };
  for (const Average when : {Average::after_backward, Average::before_backward}) {
    const RankDiagnosis rank = with(when);
    CHECK(first(rank).entry == "Tensor.add_.0.forward");
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).text ==
          "runs before Tensor.addcdiv_.0.forward, in golden after it; input.1 differs by 9.1e-02");
  }
  CHECK(no_evidence(with(Average::after)));
}

TEST_CASE("a step that failed before its backward is no other code") {
  Two two;
  step(two.golden, Average::after);
  two.target.forward("Functional.linear.0.forward", {tensor(5), tensor(1, "[64, 64]")}, {tensor(6)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(no_evidence(rank));
  REQUIRE(!rank.notes.empty());
  CHECK(rank.notes[0].find("before its backward, after Functional.linear.0.forward") != std::string::npos);
}

TEST_CASE("terms of a sum pair by what they scale") {
  const auto run = [](const std::string& of_one, const std::string& of_other, bool in_order, double error) {
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1)}, {rough(2, error)}, {tensor(1)}, {tensor(2)});
    two.forward("Functional.linear.1.forward", {tensor(1)}, {tensor(3)}, {tensor(1)}, {tensor(3)});
    two.golden.forward("Tensor.__rmul__.0.forward", {tensor(2), scalar("float", "0.5")}, {tensor(1)});
    two.golden.forward("Tensor.__rmul__.1.forward", {tensor(3), scalar("float", "0.2")}, {tensor(0.6)});
    const bool same = of_one == "0.5";
    DumpText& side = two.target;
    const std::string one = rough(2, error);
    if (in_order) side.forward("Tensor.__rmul__.0.forward", {one, scalar("float", of_one)}, {tensor(0.4)});
    side.forward(in_order ? "Tensor.__rmul__.1.forward" : "Tensor.__rmul__.0.forward",
                 {tensor(3), scalar("float", of_other)}, {tensor(same ? 0.6 : 1.5)});
    if (!in_order)
      side.forward("Tensor.__rmul__.1.forward", {one, scalar("float", of_one)}, {rough(1, error)});
    two.forward("Tensor.__add__.0.forward", {tensor(same ? 0.6 : 1.5), tensor(same ? 1 : 0.4)},
                {rough(same ? 1.5 : 1.7, error)}, {tensor(1), tensor(0.6)}, {tensor(1.5)});
    return diagnosed(two);
  };
  CHECK(no_evidence(run("0.5", "0.2", false, 0)));
  CHECK(no_evidence(run("0.5", "0.2", false, 1e-7)));  // as in a later step
  const RankDiagnosis exchanged = run("0.2", "0.5", true, 0);
  CHECK(first(exchanged).entry == "Tensor.__rmul__.0.forward");
  CHECK(first(exchanged).kind == Kind::argument);
}

TEST_CASE("a copy of a model that no recorder hooks makes the same calls") {
  const auto run = [](double weight) {
    Two two;
    const std::string taken = tensor(weight, "[64, 64]");
    const std::string kept = tensor(1, "[64, 64]");
    two.forward("Functional.linear.0.forward", {tensor(5), kept}, {tensor(6)}, {tensor(5), kept},
                {tensor(6)});
    two.backward("Functional.linear.0.backward", {tensor(7)}, {tensor(8)}, {tensor(7)}, {tensor(8)});
    two.forward("Functional.linear.1.forward", {tensor(2), taken}, {tensor(3 * weight)}, {tensor(2), kept},
                {tensor(3)});
    two.forward("Functional.silu.0.forward", {tensor(3 * weight)}, {tensor(4 * weight)}, {tensor(3)},
                {tensor(4)});
    const testing::Construct ours =
        modules_of({{"Functional.linear.0.forward", "Module.fc.Linear.forward.0"},
                    {"Functional.linear.1.forward", "Module.fc.Linear.forward.1"}});
    const testing::Construct theirs =
        modules_of({{"Functional.linear.0.forward", "Module.fc.Linear.forward.0"}});
    return diagnosed(
        two,
        [&](testing::Asked& asked) {
          measuring::MeasuredRank& rank = asked.rank;
          rank.golden_construct = theirs;
          rank.alignment = std::make_shared<const pairing::Alignment>(
              pairing::align(rank.target, rank.golden, &ours->table(), &theirs->table()));
          CHECK(rank.alignment->golden_of == std::vector<std::uint32_t>{0, 1, 2, 3});
        },
        ours);
  };
  CHECK(no_evidence(run(1)));
  const RankDiagnosis rank = run(1.2);
  CHECK(first(rank).entry == "Functional.linear.1.forward");
  CHECK(first(rank).place == "input.1");
}

TEST_CASE("exchanged operands") {
  SUBCASE("by their contents") {
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    two.forward("Tensor.__sub__.0.forward", {tensor(2), tensor(5)}, {tensor(-3)}, {tensor(5), tensor(2)},
                {tensor(3)});
    const RankDiagnosis rank = diagnosed(two);
    CHECK(first(rank).entry == "Tensor.__sub__.0.forward");
    CHECK(first(rank).text.starts_with("its operands are exchanged: input.0 differs by"));
  }
  SUBCASE("by their shapes, where the effect shows at a later call") {
    const auto at = [](std::string_view shape) { return tensor(1, shape, "torch.int64"); };
    for (const double error : {0.0, 1e-2}) {
      Two two;
      two.forward("Tensor.__sub__.0.forward", {at("[8, 1]"), at("[1, 8]")}, {at("[8, 8]")},
                  {at("[1, 8]"), at("[8, 1]")}, {at("[8, 8]")});
      two.forward("Functional.embedding.0.forward", {at("[8, 8]"), tensor(3, "[9, 4]")}, {tensor(4)},
                  {at("[8, 8]"), tensor(3, "[9, 4]")}, {tensor(4)});
      two.forward("Tensor.__mul__.0.forward", {tensor(4), tensor(2)}, {rough(6, error)},
                  {tensor(4), tensor(2)}, {tensor(6)});
      const RankDiagnosis rank = diagnosed(two);
      CHECK(no_evidence(rank) == (error == 0));
      CHECK(first(rank).entry == "Tensor.__sub__.0.forward");
      if (error > 0)
        CHECK(first(rank).text.find("at Tensor.__mul__.0.forward, 0 before") != std::string::npos);
    }
  }
}

TEST_CASE("an exchanged comparison shows where its mask is used") {
  const auto mask = [](int count, std::string_view shape) {
    return R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": )" + std::string(shape) +
           R"(, "Max": true, "Min": false, "Mean": null, "Norm": null, "True_count": )" +
           std::to_string(count) + "}";
  };
  const auto labels = [](double size) { return tensor(size, "[4]", "torch.int64"); };
  Two two;
  const Texts compared = {tensor(1, "[4]"), scalar("float", "0.3")};
  std::string consumer = "Tensor.masked_fill.0.forward";
  SUBCASE("with as many elements") {
    two.target.forward("Tensor.__gt__.0.forward", compared, {mask(2, "[4]")});
    two.golden.forward("Tensor.__lt__.0.forward", compared, {mask(2, "[4]")});
    two.forward(consumer, {labels(2), mask(2, "[4]")}, {labels(5)}, {labels(2), mask(2, "[4]")}, {labels(4)});
  }
  SUBCASE("behind a negation and a view that are not recorded, and other calls") {
    two.target.forward("Tensor.__le__.0.forward", compared, {mask(3, "[4]")});
    two.golden.forward("Tensor.__lt__.0.forward", compared, {mask(2, "[4]")});
    for (int i = 0; i < 12; ++i)
      two.forward("Functional.linear." + std::to_string(i) + ".forward", {tensor(10 + i)}, {tensor(11 + i)},
                  {tensor(10 + i)}, {tensor(11 + i)});
    two.forward(consumer, {tensor(22), mask(1, "[1, 4]")}, {tensor(25)}, {tensor(22), mask(2, "[1, 4]")},
                {tensor(24)});
  }
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::exchanged);
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(first(rank).text.find("at " + consumer + ", 0 before") != std::string::npos);
  CHECK(testing::is_one_cause(rank));
}

TEST_CASE("a cast keeps the rounding of the type that the value was computed in") {
  for (const double error : {1e-3, 0.5}) {
    CAPTURE(error);
    Two two;
    const auto half = [](double size) { return tensor(size, "[4, 64]", "torch.bfloat16"); };
    two.forward("Functional.linear.0.forward", {half(1)}, {half(2)}, {half(1)}, {half(2)});
    // In golden a part of a larger product that no recorder saw.
    two.forward("Tensor.pow.0.forward", {tensor(2)}, {tensor(4)}, {rough(2, error)}, {rough(4, 2 * error)});
    CHECK(no_evidence(diagnosed(two)) == (error < 0.1));
  }
}

TEST_CASE("the training says in which type a run computes, not the sampling that follows") {
  Two two;
  int number = 0;
  const auto product = [&](std::string_view ours, double error) {
    const std::string name = "Functional.linear." + std::to_string(number++) + ".forward";
    two.forward(name, {tensor(1), tensor(3, "[64, 64]")}, {rough(2, error, "[4, 64]", ours)},
                {tensor(1), tensor(3, "[64, 64]")}, {tensor(2, "[4, 64]", "torch.bfloat16")});
  };
  for (int i = 0; i < 6; ++i) product("torch.float32", 1e-3);
  two.backward("Functional.linear.0.backward", {tensor(7)}, {tensor(8)}, {tensor(7)}, {tensor(8)});
  for (int i = 0; i < 6; ++i) product("torch.bfloat16", 0);
  CHECK(no_evidence(diagnosed(two)));
}

}  // namespace msprobe::diagnosis::order_of_calls_test
