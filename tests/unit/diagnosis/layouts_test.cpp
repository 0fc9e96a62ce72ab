// SPDX-License-Identifier: Apache-2.0
// Collectives that one layout alone makes, and gradients over the micro-batches of a step.
#include <doctest/doctest.h>

#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::layouts_test {
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::is_one_cause;
using testing::modules_of;
using testing::named;
using testing::no_evidence;
using testing::scalar;
using testing::tensor;
using testing::Two;

std::string matrix(double size) {
  return tensor(size, "[64, 64]");
}

/// One optimizer step for each list of norms.
std::string steps_of(const std::vector<std::string>& norms, const std::string& parameters,
                     const std::string& tied = {}) {
  std::string text;
  for (const std::string& each : norms)
    text += (text.empty() ? "" : ", ") +
            (R"({"module": "torch.optim.sgd", "class": "SGD", "groups": [{"settings": {}, "parameters": [)" +
             parameters + R"(], "gradient_norms": [)" + each + "]}]}");
  return R"({"optimizers": [)" + text + R"(], "tied_parameters": [)" + tied + "]}";
}

/// Three layers of which one side gathers the weights, from which unrecorded code takes them. `out` and
/// `weight` are this run's of the second layer; 2 and 0.4 are right.
RankDiagnosis gathered(bool ours, double out, double weight) {
  Two two;
  for (DumpText* side : {&two.target, &two.golden}) {
    const bool is_target = side == &two.target;
    double in = 1;
    for (int layer = 0; layer < 3; ++layer) {
      const std::string call = std::to_string(layer) + ".forward";
      const bool here = is_target && layer == 1;
      if (is_target == ours) {
        // The memory is that of an earlier call.
        side->forward("Tensor.narrow." + call, {tensor(1e30 + layer, "[8192]"), scalar("int", "0")},
                      {tensor(1e29 + layer, "[4096]")});
        side->forward("Distributed.all_gather_into_tensor." + call, {tensor(0.2 + 0.1 * layer, "[4096]")},
                      {tensor(0.35 + 0.1 * layer, "[8192]")});
      }
      const double put_out = here ? out : 2 + 0.1 * (layer - 1);
      side->forward("Functional.linear." + call,
                    {tensor(in), matrix(here ? weight : 0.4 + 0.1 * (layer - 1))}, {tensor(put_out)});
      in = put_out;
    }
  }
  return diagnosed(two);
}

TEST_CASE("the gathers of a layout are no cause of what a call makes of right weights") {
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    const RankDiagnosis right = gathered(ours, 2, 0.4);
    CHECK(no_evidence(right));
    CHECK(first(right).entry == "Tensor.narrow.0.forward");
    const RankDiagnosis wrong = gathered(ours, 2.4, 0.4);
    CHECK(first(wrong).kind == Kind::introduced);
    CHECK(first(wrong).entry == "Functional.linear.1.forward");
    CHECK(is_one_cause(wrong));
    const RankDiagnosis other = gathered(ours, 2.4, 0.47);
    CHECK(first(other).kind == Kind::parameter);
    CHECK(first(other).entry == "Functional.linear.1.forward");
    CHECK(is_one_cause(other));
  }
}

TEST_CASE("a parameter without a content is one parameter, however often it is recorded") {
  const std::string nan =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [64], "Max": NaN, "Min": NaN, )"
      R"("Mean": NaN, "Norm": NaN})";
  const auto told = [&](bool both) {
    Two two;
    for (DumpText* side : {&two.target, &two.golden}) {
      const bool is_target = side == &two.target;
      const std::string weight = is_target ? nan : tensor(0.3, "[64]");
      const std::string bias = is_target && both ? nan : tensor(0.2, "[64]");
      for (int pass = 0; pass < 2; ++pass) {
        const std::string call = std::to_string(pass);
        side->forward("Functional.layer_norm." + call + ".forward",
                      {tensor(1 + pass), scalar("int", "64"), weight, bias},
                      {is_target ? nan : tensor(2 + pass)});
        side->forward("Module.a.LayerNorm.forward." + call, {tensor(1 + pass)},
                      {is_target ? nan : tensor(2 + pass)}, {},
                      {named("weight", weight), named("bias", bias)});
      }
    }
    const auto modules = modules_of({{"Functional.layer_norm.0.forward", "Module.a.LayerNorm.forward.0"},
                                     {"Functional.layer_norm.1.forward", "Module.a.LayerNorm.forward.1"}});
    const RankDiagnosis rank = diagnosed(two, {}, modules);
    CHECK(first(rank).kind == Kind::parameter);
    return first(rank).text;
  };
  CHECK(told(false).find("so do") == std::string::npos);
  CHECK(told(true).find("; so do 1 more of 2 parameters") != std::string::npos);
}

/// Two backward passes whose gradients accumulate. In the second, this run's differ, as those do that ranks
/// reduced after the first; what the optimizer takes is `taken`, in golden 16 times 1.1.
RankDiagnosis tied(double taken, const std::string& names) {
  Two two;
  for (DumpText* side : {&two.target, &two.golden}) {
    const bool is_target = side == &two.target;
    for (int pass = 0; pass < 2; ++pass) {
      const std::string call = std::to_string(pass);
      side->forward("Functional.linear." + call + ".forward", {tensor(1 + pass), matrix(0.1)},
                    {tensor(3 + pass)});
      side->backward("Module.head.Linear.backward." + call, {tensor(1 + pass)}, {tensor(2 + pass)});
      const std::string gradient = matrix(pass == 0 ? 0.5 : is_target ? 1.3 : 1.2);
      for (const char* module : {"Module.emb.Embedding", "Module.head.Linear"})
        side->gradients(std::string(module) + ".parameters_grad." + call,
                        {named("weight", "[" + gradient + "]")});
    }
    side->training = steps_of({python_repr(16 * (is_target ? taken : 1.1))}, R"("emb.weight")", names);
  }
  return diagnosed(two);
}

TEST_CASE("an optimizer knows a tied parameter by its first name") {
  const std::string names = R"(["emb.weight", "head.weight"])";
  CHECK(no_evidence(tied(1.1, names)));
  CHECK(!no_evidence(tied(1.1, "")));
  CHECK(!no_evidence(tied(1.3, names)));
}

TEST_CASE("clipping that is written out is right if all steps take the same gradients") {
  const auto run = [](const std::string& second) {
    Two two;
    for (DumpText* side : {&two.target, &two.golden}) {
      for (int pass = 0; pass < 2; ++pass) {
        const std::string call = std::to_string(pass);
        const double size = 3 + pass;
        side->forward("Functional.linear." + call + ".forward", {tensor(1 + pass), matrix(0.1)},
                      {tensor(2 + pass)});
        side->backward("Module.a.Linear.backward." + call, {tensor(1 + pass)}, {tensor(2 + pass)});
        side->gradients("Module.a.Linear.parameters_grad." + call,
                        {named("weight", "[" + matrix(size) + "]")});
        if (side == &two.target)
          side->forward("Tensor.__imul__." + call + ".forward", {matrix(size), scalar("float", "0.5")},
                        {matrix(size / 2)});
      }
      side->training = steps_of({"24", side == &two.target ? second : "32"}, R"("a.weight")");
    }
    return diagnosed(two);
  };
  CHECK(no_evidence(run("32")));
  const RankDiagnosis wrong = run("64");
  CHECK(first(wrong).is_evidence());
  CHECK(first(wrong).text.starts_with("this run changes the gradient of a.weight between backward and"));
}

/// Both runs clip. `late`: this run does it after the step of its optimizer.
RankDiagnosis clipped(bool late, const std::string& taken) {
  Two two;
  for (DumpText* side : {&two.target, &two.golden}) {
    side->forward("Functional.linear.0.forward", {tensor(1), matrix(0.1)}, {tensor(2)});
    side->backward("Module.a.Linear.backward.0", {tensor(1)}, {tensor(2)});
    side->gradients("Module.a.Linear.parameters_grad.0",
                    {named("w", "[" + matrix(1) + "]"), named("b", "[" + matrix(2) + "]")});
    const auto clip = [&] {
      side->forward("Torch._foreach_norm.0.forward", {matrix(1), matrix(2)}, {tensor(1, "[]")});
    };
    const bool behind = late && side == &two.target;
    if (!behind) clip();
    side->forward("Tensor.lerp_.0.forward", {matrix(0.1)}, {matrix(0.2)});
    if (behind) clip();
    side->training = steps_of({side == &two.target ? taken : "8, 16"}, R"("a.w", "a.b")");
  }
  const auto modules =
      modules_of({{"Torch._foreach_norm.0.forward", "clip_grad"}, {"Tensor.lerp_.0.forward", "optimizer"}});
  return diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
}

TEST_CASE("clipping after the optimizer's step has the name of its call") {
  CHECK(no_evidence(clipped(false, "8, 16")));
  const RankDiagnosis late = clipped(true, "16, 32");
  CHECK(first(late).text.starts_with(
      "between backward and optimizer, where golden clips, this run after the optimizer's step: "));
  CHECK(first(late).entry == "optimizer");
  CHECK(first(late).golden_entry == "Torch._foreach_norm.0.forward");
  CHECK(is_one_cause(late));
}

TEST_CASE("where both runs clip, only other factors of one run hint at an average over ranks") {
  CHECK(first(clipped(false, "16, 32"))
            .text.starts_with("between backward and optimizer, where both runs clip: the optimizer takes 2"));
  CHECK(first(clipped(false, "16, 30"))
            .text.starts_with("between backward and optimizer, where both runs clip and this run changes "
                              "gradients by different factors, as clipping by value or averaging over ranks "
                              "does: the optimizer takes 2"));
}

/// Two micro-batches whose gradients accumulate; a reduction follows after one of them. In `golden_pass` the
/// ranks reduce in golden.
RankDiagnosis reduced(int pass_of_target, int golden_pass) {
  Two two;
  for (DumpText* side : {&two.target, &two.golden}) {
    double sum = 0;
    for (int pass = 0; pass < 2; ++pass) {
      const std::string call = std::to_string(pass);
      side->forward("Functional.linear." + call + ".forward", {tensor(1 + pass), matrix(0.1)},
                    {tensor(3 + pass)});
      side->backward("Module.a.Linear.backward." + call, {tensor(1 + pass)}, {tensor(2 + pass)});
      sum += 0.9 + 0.1 * pass;
      side->gradients("Module.a.Linear.parameters_grad." + call, {named("w", "[" + matrix(sum) + "]")});
      if (pass != (side == &two.target ? pass_of_target : golden_pass)) continue;
      side->forward("Distributed.all_reduce.0.forward", {matrix(sum)}, {matrix(1.3 * sum)});
      sum *= 1.3;
    }
    side->training = steps_of({python_repr(16 * sum)}, R"("a.w")");
  }
  return diagnosed(two);
}

TEST_CASE("a reduction after another micro-batch is given another gradient, not data") {
  CHECK(no_evidence(reduced(1, 1)));
  for (const int pass : {0, 1}) {
    CAPTURE(pass);
    const RankDiagnosis rank = reduced(pass, 1 - pass);
    CHECK(first(rank).kind == Kind::feed);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Distributed.all_reduce.0.forward");
    CHECK(first(rank).text ==
          (pass == 0
               ? "input.0 is the gradient of a.w in parameters_grad.0, in golden that in parameters_grad.1"
               : "input.0 is the gradient of a.w in parameters_grad.1, in golden that in "
                 "parameters_grad.0"));
    CHECK(is_one_cause(rank));
  }
}

}  // namespace msprobe::diagnosis::layouts_test
