// SPDX-License-Identifier: Apache-2.0
// Differences of the code that no value shows at first, and the values that they make wrong later.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::suspects_test {
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::is_one_cause;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;

namespace {

const std::string kWeight = tensor(0.1, "[64, 64]");
const std::string kLoss = tensor(9, "[]");

std::string mask(int trues) {
  return R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [4, 64], "Max": true, "Min": false,
             "Mean": null, "Norm": null, "True_count": )" +
         std::to_string(trues) + "}";
}

/// A linear layer and the sum of its output; golden may run more after them.
Two loss() {
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {tensor(2)}, {tensor(1), kWeight},
              {tensor(2)});
  two.forward("Tensor.sum.0.forward", {tensor(2)}, {kLoss}, {tensor(2)}, {kLoss});
  return two;
}

void wrong_gradient(Two& two) {
  two.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(3)}, {tensor(1, "[]")}, {tensor(3)});
  two.backward("Functional.linear.0.backward", {rough(4, 0.5)}, {rough(5, 0.5)}, {tensor(4)}, {tensor(5)});
}

bool says(const Finding& found, std::string_view text) {
  return found.text.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a gradient that is wrong leads to what one side alone makes of the output") {
  Two two = loss();
  two.golden.forward("Tensor.abs.0.forward", {tensor(2)}, {tensor(2.5)});
  two.golden.forward("Tensor.mean.0.forward", {tensor(2.5)}, {tensor(0.2, "[]")});
  wrong_gradient(two);
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::removed);
  CHECK(first(rank).entry == "Tensor.abs.0.forward");
  CHECK(says(first(rank),
             "golden runs Tensor.abs, Tensor.mean here, this run does not; error 5.0e-01 at "
             "Functional.linear.0.backward"));
  CHECK(is_one_cause(rank));
}

TEST_CASE("what one side alone runs elsewhere is no cause of a gradient") {
  Two two = loss();
  two.golden.forward("Tensor.abs.0.forward", {tensor(7)}, {tensor(7.5)});
  wrong_gradient(two);
  CHECK(first(diagnosed(two)).entry == "Functional.linear.0.backward");
}

TEST_CASE("what one side alone runs between a right gradient and a wrong one is its cause") {
  Two two = loss();
  two.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(3)}, {tensor(1, "[]")}, {tensor(3)});
  two.golden.forward("Distributed.all_reduce.0.forward", {tensor(3.5)}, {tensor(4)});
  two.backward("Functional.linear.0.backward", {rough(4, 0.5)}, {rough(5, 0.5)}, {tensor(4)}, {tensor(5)});
  CHECK(first(diagnosed(two)).entry == "Distributed.all_reduce.0.forward");
}

TEST_CASE("an argument that statistics do not show is seen where the elements are mixed") {
  Two two;
  two.forward("Functional.pad.0.forward", {tensor(1), scalar("int", "1")}, {tensor(1, "[4, 66]")},
              {tensor(1), scalar("int", "2")}, {tensor(1, "[4, 66]")});
  two.forward("Functional.linear.0.forward", {tensor(1, "[4, 66]"), kWeight}, {rough(2, 0.3)},
              {tensor(1, "[4, 66]"), kWeight}, {tensor(2)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::argument);
  CHECK(first(rank).entry == "Functional.pad.0.forward");
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(is_one_cause(rank));
}

TEST_CASE("without a value that is wrong a silent difference stays a hint") {
  Two two = loss();
  two.golden.forward("Tensor.abs.0.forward", {tensor(2)}, {tensor(2.5)});
  CHECK(no_evidence(diagnosed(two)));
}

TEST_CASE("what a step leaves to the next is named in its own step") {
  Two before;
  before.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {tensor(2)}, {tensor(1), kWeight},
                 {tensor(2)});
  before.target.forward("Tensor.add.0.forward", {kWeight, tensor(0.2)}, {rough(0.11, 0.4, "[64, 64]")});
  before.golden.forward("Tensor.sub.0.forward", {kWeight, tensor(0.2)}, {tensor(0.11, "[64, 64]")});
  Two behind;
  behind.forward("Functional.linear.0.forward", {tensor(1), rough(0.11, 0.4, "[64, 64]")}, {rough(2, 0.4)},
                 {tensor(1), tensor(0.11, "[64, 64]")}, {tensor(2)});
  History history;
  REQUIRE(no_evidence(diagnosed(before, history)));
  const RankDiagnosis rank = diagnosed(behind, history);
  CHECK(first(rank).entry == "Tensor.add.0.forward");
  CHECK(first(rank).golden_entry == "Tensor.sub.0.forward");
  CHECK(first(rank).target_api == pairing::kNone);  // its number is that of another step's entry
  CHECK(is_one_cause(rank));
}

TEST_CASE("a buffer that a module changes wrongly leads to the change in the step before") {
  // A module hands on the same, whatever it does to its buffers for the next step.
  const auto module = [](Two& two, double ours, double theirs) {
    const auto text = [](double code) {
      return R"({"input_args": [)" + tensor(1) + R"(], "input_kwargs": {}, "output": [)" + tensor(2) +
             R"(], "buffers": {"code": )" + tensor(code, "[16, 64]") + "}}";
    };
    two.target.add("Module.vq.Vq.forward.0", text(ours));
    two.golden.add("Module.vq.Vq.forward.0", text(theirs));
  };
  const auto lookup = [](Two& two, double ours, double theirs) {
    two.forward("Functional.embedding.0.forward", {tensor(1), tensor(ours, "[16, 64]")}, {tensor(ours)},
                {tensor(1), tensor(theirs, "[16, 64]")}, {tensor(theirs)});
  };
  const auto next_step = [&](bool divides, bool decays, double ours) {
    const auto modules = testing::modules_of({{"Functional.embedding.0.forward", "Module.vq.Vq.forward.0"},
                                              {"Tensor.mul_.0.forward", "Module.vq.Vq.forward.0"},
                                              {"Tensor.__add__.0.forward", "Module.vq.Vq.forward.0"},
                                              {"Tensor.__truediv__.0.forward", "Module.vq.Vq.forward.0"}});
    const auto both = [&](testing::Asked& asked) { asked.rank.golden_construct = modules; };
    History history;
    Two two;
    lookup(two, 5, 5);
    const double kept = decays ? 0.1 : 0.9;
    const auto state = [](double size) { return tensor(size, "[16, 64]"); };
    two.forward("Tensor.mul_.0.forward", {state(4), scalar("float", decays ? "0.1" : "0.9")},
                {state(4 * kept)}, {state(4), scalar("float", "0.9")}, {state(3.6)});
    two.forward("Tensor.__add__.0.forward", {state(4 * kept), state(0.5)}, {state(4 * kept + 0.5)},
                {state(3.6), state(0.5)}, {state(4.1)});
    two.golden.forward("Tensor.__truediv__.0.forward", {state(4.1), state(7)}, {state(3)});
    if (divides)
      two.target.forward("Tensor.__truediv__.0.forward", {state(4 * kept + 0.5), state(7)}, {state(ours)});
    module(two, 5, 5);
    two.forward("Torch.exp.0.forward", {tensor(2)}, {tensor(9)}, {tensor(2)}, {tensor(9)});
    REQUIRE(no_evidence(diagnosed(two, history, both, modules)));
    Two next;
    lookup(next, ours, 3);
    module(next, ours, 3);
    return diagnosed(next, history, both, modules);
  };
  CHECK(no_evidence(next_step(true, false, 3)));
  const RankDiagnosis undivided = next_step(false, false, 4.1);
  CHECK(first(undivided).entry == "Tensor.__truediv__.0.forward");
  CHECK(first(undivided).confidence == Confidence::certain);
  CHECK(first(undivided).text ==
        "golden runs Tensor.__truediv__ here, this run does not, but in the next step at "
        "Module.vq.Vq.forward.0: "
        "buffer vq.code differs by 3.7e-01 before it is used");
  CHECK(is_one_cause(undivided));
  const RankDiagnosis decayed = next_step(true, true, 0.7);
  CHECK(first(decayed).entry == "Tensor.mul_.0.forward");
  CHECK(first(decayed).text.starts_with("argument input.1 is 0.1, golden 0.9; "));
  CHECK(says(first(decayed),
             "; the output of vq is the same, but in the next step at Module.vq.Vq.forward.0: "
             "buffer vq.code differs by "));
  CHECK(is_one_cause(decayed));
}

TEST_CASE("a gradient that trains no parameter is a hint") {
  const std::string trained = ", \"requires_grad\": true";
  const std::string cut = ", \"requires_grad\": false";
  const auto input = [](std::string_view more) { return tensor(1, "[4, 64]", "torch.float32", more); };
  for (const bool same : {true, false}) {
    Two two;
    two.forward("Module.l.Linear.forward.0", {input(trained)}, {tensor(2)}, {input(cut)}, {tensor(2)});
    two.target.backward("Module.l.Linear.backward.0", {tensor(3)}, {tensor(4)});
    two.golden.backward("Module.l.Linear.backward.0", {tensor(3)}, {});
    for (testing::DumpText* side : {&two.target, &two.golden}) {
      const bool other = !same && side == &two.target;
      side->gradients("Module.l.Linear.parameters_grad.0",
                      {named("weight", "[" + (other ? rough(5, 0.5) : tensor(5)) + "]")});
    }
    CAPTURE(same);
    CHECK(no_evidence(diagnosed(two)) == same);
  }
}

TEST_CASE("masks of one shape differ by how many elements are true") {
  Two two;
  two.forward("Tensor.__and__.0.forward", {mask(90)}, {mask(89)}, {mask(90)}, {mask(89)});
  two.forward("Functional.softmax.0.forward", {tensor(1), mask(156)}, {rough(2, 0.3)}, {tensor(1), mask(89)},
              {tensor(2)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Functional.softmax.0.forward");
  CHECK(first(rank).place == "input.1");
}

TEST_CASE(
    "a collective of the backward that golden alone runs is the cause of a gradient that is wrong later") {
  // Its result is added to what comes in on another way before anything is recorded.
  Two two = loss();
  two.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(3)}, {tensor(1, "[]")}, {tensor(3)});
  two.golden.forward("Distributed.all_reduce.0.forward", {tensor(7)}, {tensor(8)});
  two.backward("Tensor.topk.0.backward", {tensor(6)}, {tensor(6.5)}, {tensor(6)}, {tensor(6.5)});
  two.backward("Functional.linear.0.backward", {rough(4, 0.5)}, {rough(5, 0.5)}, {tensor(4)}, {tensor(5)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Distributed.all_reduce.0.forward");
  CHECK(says(first(rank), "golden runs Distributed.all_reduce here, this run does not"));
  CHECK(is_one_cause(rank));
}

TEST_CASE("a backward that records nothing of what it sends back is named where that arrives wrong") {
  Two two;
  two.forward("Module.a.GELU.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.forward("Module.b.Dropout.forward.0", {tensor(2)}, {tensor(3)}, {tensor(2)}, {tensor(3)});
  two.backward("Module.b.Dropout.backward.0", {tensor(4)}, {}, {tensor(4)}, {});
  two.backward("Module.a.GELU.backward.0", {rough(5, 0.3)}, {}, {tensor(5)}, {});
  const Finding found = first(diagnosed(two));
  CHECK(found.entry == "Module.a.GELU.backward.0");
  CHECK(says(found, "Module.b.Dropout.0 uses that output and its own gradient is right"));
  CHECK(says(found, "or draws other random numbers than its forward"));
}

TEST_CASE("a gradient that is added up over passes says so") {
  Two two;
  const auto pass = [&](std::string_view call, const std::string& gradient, const std::string& golden) {
    two.backward("Module.l.Linear.backward." + std::string(call), {tensor(1)}, {tensor(2)}, {tensor(1)},
                 {tensor(2)});
    const std::string name = "Module.l.Linear.parameters_grad." + std::string(call);
    two.target.gradients(name, {named("weight", "[" + gradient + "]")});
    two.golden.gradients(name, {named("weight", "[" + golden + "]")});
  };
  pass("0", kWeight, kWeight);
  pass("1", rough(0.2, 0.5, "[64, 64]"), tensor(0.2, "[64, 64]"));
  CHECK(says(first(diagnosed(two)), "if the gradients of this step's backward passes accumulate"));
}

TEST_CASE("the shapes of tensors of another size are printed") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1, "[4, 16]")}, {tensor(2, "[4, 16]")},
              {tensor(1, "[4, 10]")}, {tensor(2, "[4, 10]")});
  bool told = false;
  for (const Finding& found : diagnosed(two).findings) {
    told = told || says(found, "has shape [4, 16], golden [4, 10]");
    CHECK(!says(found, "differs by infinite"));
  }
  CHECK(told);
}

/// A layer and its loss. `end`: what a side does with both, with the backward of that. It returns the factor
/// by which the gradients that come back are larger.
template <class End>
Two training(const End& end) {
  Two two;
  for (DumpText* side : {&two.target, &two.golden}) {
    side->forward("Functional.linear.0.forward", {tensor(1), kWeight}, {tensor(2)});
    side->forward("Module.head.Linear.forward.0", {tensor(1)}, {tensor(2)}, {}, {named("weight", kWeight)});
    side->forward("Functional.mse_loss.0.forward", {tensor(2), tensor(3)}, {tensor(5)});
    const double factor = end(*side, side == &two.target);
    side->backward("Functional.mse_loss.0.backward", {tensor(0.1 * factor)}, {tensor(0.3 * factor)});
    side->backward("Functional.linear.0.backward", {tensor(0.3 * factor)}, {tensor(0.5 * factor)});
  }
  return two;
}

TEST_CASE("a term that one side alone adds to the loss is named, not the gradient that arrives wrong") {
  const auto run = [](bool ours, bool theirs, bool only_printed = false) {
    return diagnosed(training([&](DumpText& side, bool is_target) {
      side.forward("Tensor.mean.0.forward", {tensor(5)}, {kLoss});
      const bool adds = is_target ? ours : theirs;
      if (adds) {
        side.forward("Tensor.abs.0.forward", {tensor(5)}, {tensor(5.5)});
        side.forward("Tensor.sum.0.forward", {tensor(5.5)}, {tensor(4, "[]")});
        side.forward("Tensor.__add__.0.forward", {kLoss, tensor(4, "[]")}, {tensor(13, "[]")});
      }
      const bool trains = adds && !only_printed;
      if (trains) {
        side.backward("Tensor.__add__.0.backward", {tensor(1, "[]")}, {tensor(1, "[]"), tensor(1, "[]")});
        side.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(0.02)});
        side.backward("Tensor.abs.0.backward", {tensor(0.02)}, {tensor(0.03)});
      }
      side.backward("Tensor.mean.0.backward", {tensor(1, "[]")}, {tensor(0.1)});
      return trains ? 1.3 : 1;
    }));
  };
  CHECK(no_evidence(run(true, true)));
  CHECK(no_evidence(run(true, false, true)));
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    const RankDiagnosis rank = run(ours, !ours);
    CHECK(first(rank).kind == (ours ? Kind::added : Kind::removed));
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Tensor.abs.0.forward");
    CHECK(first(rank).text.starts_with(
        ours ? "runs Tensor.abs, Tensor.sum, Tensor.__add__, golden does not; error "
             : "golden runs Tensor.abs, Tensor.sum, Tensor.__add__ here, this run does not; error "));
    CHECK(first(rank).side == "the code differs, not a kernel");
    CHECK(is_one_cause(rank));
  }
}

TEST_CASE("a penalty on weights that one side alone adds to the loss is named where it begins") {
  // It changes the gradient of the weight alone.
  const auto run = [](bool ours, double gradient) {
    Two two = training([&](DumpText& side, bool is_target) {
      if (is_target == ours) {
        side.forward("Tensor.pow.0.forward", {kWeight, scalar("int", "2")}, {tensor(0.02, "[64, 64]")});
        side.forward("Tensor.sum.0.forward", {tensor(0.02, "[64, 64]")}, {tensor(0.3, "[]")});
        side.forward("Tensor.__add__.0.forward", {kLoss, tensor(0.3, "[]")}, {tensor(9.3, "[]")});
      }
      return 1;
    });
    for (DumpText* side : {&two.target, &two.golden}) {
      const double own = (side == &two.target) == ours ? gradient : 0.8;
      side->gradients("Module.head.Linear.parameters_grad.0",
                      {named("weight", "[" + tensor(own, "[64, 64]") + "]")});
    }
    return diagnosed(two);
  };
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    CHECK(no_evidence(run(ours, 0.8)));
    const RankDiagnosis rank = run(ours, 0.9);
    CHECK(first(rank).kind == (ours ? Kind::added : Kind::removed));
    CHECK(first(rank).entry == "Tensor.pow.0.forward");
    CHECK(says(first(rank), "runs Tensor.pow, Tensor.sum, Tensor.__add__"));
    CHECK(says(first(rank), " at Module.head.Linear.parameters_grad.0, 0 before"));
    CHECK(is_one_cause(rank));
  }
}

TEST_CASE("where both sides end a loss otherwise, the ends are named side by side") {
  const auto run = [](bool exchanged, bool masks) {
    return diagnosed(training([&](DumpText& side, bool is_target) {
      if (is_target != exchanged) {
        side.forward("Tensor.mean.0.forward", {tensor(5)}, {tensor(0.6, "[]")});
        side.backward("Tensor.mean.0.backward", {tensor(1, "[]")}, {tensor(0.1)});
        return 1.0;
      }
      const double kept = masks ? 4 : 5;
      side.forward("Tensor.__mul__.0.forward", {tensor(5), tensor(0.7)}, {tensor(kept)});
      side.forward("Tensor.sum.0.forward", {tensor(kept)}, {tensor(90, "[]")});
      side.forward("Tensor.__truediv__.0.forward", {tensor(90, "[]"), tensor(150, "[]")},
                   {tensor(masks ? 0.5 : 0.6, "[]")});
      side.backward("Tensor.__truediv__.0.backward", {tensor(1, "[]")}, {tensor(0.006, "[]")});
      side.backward("Tensor.sum.0.backward", {tensor(0.006, "[]")}, {tensor(0.1)});
      side.backward("Tensor.__mul__.0.backward", {tensor(0.1)}, {tensor(masks ? 0.08 : 0.1)});
      return masks ? 0.8 : 1.0;
    }));
  };
  for (const bool exchanged : {false, true}) {
    CAPTURE(exchanged);
    CHECK(no_evidence(run(exchanged, false)));
    const RankDiagnosis rank = run(exchanged, true);
    CHECK(first(rank).kind == Kind::exchanged);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == (exchanged ? "Tensor.__mul__.0.forward" : "Tensor.mean.0.forward"));
    CHECK(first(rank).golden_entry == (exchanged ? "Tensor.mean.0.forward" : "Tensor.__mul__.0.forward"));
    CHECK(first(rank).text.starts_with(
        exchanged
            ? "runs Tensor.__mul__, Tensor.sum, Tensor.__truediv__ where golden runs Tensor.mean; error "
            : "runs Tensor.mean where golden runs Tensor.__mul__, Tensor.sum, Tensor.__truediv__; error "));
    CHECK(is_one_cause(rank));
  }
}

TEST_CASE("a loss that one run divides again in each micro-batch") {
  // In every micro-batch golden divides by 4; the other run does so twice, or twice by 2.
  const auto run = [](bool ours, double by) {
    Two two;
    for (DumpText* side : {&two.target, &two.golden}) {
      const bool again = (side == &two.target) == ours;
      int calls = 0;
      for (int i = 0; i < 4; ++i) {
        const std::string call = std::to_string(i);
        const double size = 1 + 0.1 * i;
        side->forward("Functional.linear." + call + ".forward", {tensor(size), kWeight}, {tensor(2 * size)});
        side->forward("Functional.mse_loss." + call + ".forward", {tensor(2 * size)}, {tensor(size, "[]")});
        double factor = 1;
        const std::vector<double> divisors = again ? std::vector<double>{by, by} : std::vector<double>{4};
        const int behind = calls + static_cast<int>(divisors.size());
        for (const double divisor : divisors) {
          side->forward("Tensor.__truediv__." + std::to_string(calls++) + ".forward",
                        {tensor(size * factor, "[]"), scalar("float", python_repr(divisor))},
                        {tensor(size * factor / divisor, "[]")});
          factor /= divisor;
        }
        double gradient = 1;
        for (std::size_t k = 0; k < divisors.size(); ++k) {
          side->backward(
              "Tensor.__truediv__." + std::to_string(behind - 1 - static_cast<int>(k)) + ".backward",
              {tensor(gradient, "[]")}, {tensor(gradient / divisors[k], "[]")});
          gradient /= divisors[k];
        }
        side->backward("Functional.mse_loss." + call + ".backward", {tensor(factor, "[]")},
                       {tensor(0.5 * factor * size)});
        side->backward("Functional.linear." + call + ".backward", {tensor(0.5 * factor * size)},
                       {tensor(0.6 * factor * size)});
      }
    }
    return diagnosed(two);
  };
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    CHECK(no_evidence(run(ours, 2)));
    const RankDiagnosis rank = run(ours, 4);
    CHECK(first(rank).kind == (ours ? Kind::added : Kind::removed));
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Tensor.__truediv__.1.forward");
    CHECK(first(rank).text.starts_with(
        ours ? "runs Tensor.__truediv__, golden does not; error "
             : "golden runs Tensor.__truediv__ here, this run does not; error "));
  }
}

TEST_CASE("a collective of the backward that this run alone makes is the cause where gradients change") {
  const auto run = [](double summed) {
    Two two = training([&](DumpText& side, bool is_target) {
      side.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(0.1)});
      if (is_target) side.forward("Distributed.all_reduce.0.forward", {tensor(0.1)}, {tensor(summed)});
      return is_target ? summed / 0.1 : 1;
    });
    return diagnosed(two);
  };
  CHECK(no_evidence(run(0.1)));  // every other rank gives zeros
  const RankDiagnosis rank = run(0.17);
  CHECK(first(rank).kind == Kind::added);
  CHECK(first(rank).entry == "Distributed.all_reduce.0.forward");
  CHECK(says(first(rank), "runs Distributed.all_reduce, golden does not; error "));
  CHECK(is_one_cause(rank));
}

/// Two steps of two ranks in a wrapper that broadcasts buffers and reduces gradients on one side. On the
/// other side something else does both, or nothing does.
Diagnosis wrapped(bool ours, bool reduces) {
  std::vector<RankFindings> all;
  for (int rank = 0; rank < 2; ++rank) {
    History history;
    std::vector<double> weights = {0.1, 0.1};
    for (int step = 0; step < 2; ++step) {
      Two two;
      for (DumpText* side : {&two.target, &two.golden}) {
        const bool has = (side == &two.target) == ours;
        const bool parallel = has || reduces;
        double& weight = weights[side == &two.target ? 0 : 1];
        // The ranks have other statistics after a step.
        const std::string own = tensor(0.2 + 0.1 * step * rank, "[64]");
        const std::string mean = parallel ? tensor(0.2, "[64]") : own;
        if (has) side->forward("Distributed.broadcast.0.forward", {own, scalar("int", "0")}, {mean});
        const double out = 2 + rank + weight;
        side->forward("Functional.linear.0.forward", {tensor(1 + rank), tensor(weight, "[64, 64]")},
                      {tensor(out)});
        side->forward("Functional.batch_norm.0.forward", {tensor(out), mean, tensor(0.9, "[64]")},
                      {tensor(1 + out)});
        side->backward("Functional.batch_norm.0.backward", {tensor(0.5)}, {tensor(0.45)});
        const double gradient = rank == 0 ? 0.8 : 0.6;
        side->gradients("Module.head.Linear.parameters_grad.0",
                        {named("weight", "[" + tensor(gradient, "[64, 64]") + "]")});
        const double taken = parallel ? 0.7 : gradient;
        side->training = R"({"optimizers": [{"module": "torch.optim.sgd", "class": "SGD", "groups": [)"
                         R"({"settings": {"lr": 0.01}, "parameters": ["head.weight"], "gradient_norms": [)" +
                         python_repr(16 * taken) + "]}]}]}";
        weight -= 0.01 * taken;
      }
      RankDiagnosis found = diagnosed(two, history);
      found.step = "step" + std::to_string(step);
      found.rank = "rank" + std::to_string(rank);
      found.number = rank;
      for (Finding& each : found.findings) {
        each.step = found.step;
        each.rank = found.rank;
      }
      all.push_back(std::move(found));
    }
  }
  return conclude(all);
}

TEST_CASE("broadcasts of buffers are no cause of gradients that no rank reduces") {
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    const Diagnosis right = wrapped(ours, true);
    CHECK(!right.has_culprit());
    REQUIRE(!right.findings.empty());
    CHECK(right.findings.front().entry == "Distributed.broadcast.0.forward");
    const Diagnosis wrong = wrapped(ours, false);
    CHECK(wrong.independent == 1);
    CHECK(wrong.culprit().entry == "optimizer");
    CHECK(wrong.culprit().step == "step0");
    CHECK(wrong.culprit().place == kGradients);
    CHECK(wrong.culprit().confidence == Confidence::certain);
    CHECK(wrong.culprit().other_ranks == std::vector<std::string>{"rank1"});
    CHECK(wrong.culprit().text.ends_with(
        ours ? "those of golden each their own: nothing reduces them there after the last backward"
             : "those of this run each their own: nothing reduces them there after the last backward"));
  }
}

}  // namespace msprobe::diagnosis::suspects_test
