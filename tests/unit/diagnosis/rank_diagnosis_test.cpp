// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rank_diagnosis.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "diagnosis/sentences.hpp"
#include "pairing/operations.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::rank_diagnosis_test {
using dump::Side;
using pairing::Alignment;
using pairing::is_product;
using testing::Asked;
using testing::Chain;
using testing::Configure;
using testing::count;
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::is_one_cause;
using testing::kNoise;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Texts;
using testing::Two;
using testing::with_tensors;

TEST_CASE("rounding is not evidence") {
  for (const bool tensors : {false, true}) {
    const RankDiagnosis rank = diagnosed(Chain().text(), tensors ? Configure(with_tensors) : Configure());
    CHECK(no_evidence(rank));
    CHECK(rank.threshold == (tensors ? 4 : 10));
    CHECK(count(rank, Origin::rounding) == 5);
    CHECK(count(rank, Origin::equal) == 4);
    CHECK(rank.agreeing == 3);
    CHECK(rank.largest_excess > 0);
  }
}

TEST_CASE("an error is explained by what came in and rounding, up to the threshold") {
  for (const bool tensors : {false, true}) {
    Chain chain;
    chain.outputs[1] = rough(3, 1e-2);
    chain.inputs[2] = rough(3, 1e-2);
    chain.outputs[2] = rough(4, 2e-2);
    const RankDiagnosis rank = diagnosed(chain.text(), tensors ? Configure(with_tensors) : Configure());
    REQUIRE(rank.explained.size() == 9);  // input, weight and output of each
    for (std::size_t entry = 0; entry < 3; ++entry) {
      CHECK(std::isnan(rank.explained[3 * entry]));
      CHECK(std::isnan(rank.explained[3 * entry + 1]));
      const bool evidence = rank.error[3 * entry + 2] >= rank.explained[3 * entry + 2];
      CHECK(evidence == (entry == 1));
    }
    if (tensors) CHECK(rank.explained[5] == doctest::Approx(4 * (kNoise + 0x1p-24)).epsilon(1e-4));
    CHECK(rank.explained[8] == doctest::Approx(rank.threshold * (1e-2 + 0x1p-24)).epsilon(1e-4));
  }
}

TEST_CASE("an error that does not follow from what came in is introduced there") {
  Chain chain;
  chain.outputs[1] = rough(3, 1e-2);
  chain.inputs[2] = rough(3, 1e-2);
  chain.outputs[2] = rough(4, 2e-2);
  const RankDiagnosis rank = diagnosed(chain.text());
  CHECK(first(rank).kind == Kind::introduced);
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(first(rank).entry == "Functional.linear.1.forward");
  CHECK(first(rank).place == "output.0");
  CHECK(rank.evidence == 1);
  // e_out / (e_in + u), where norms that were summed in float32 hide this much of both: rounded, and for
  // 4,096 elements.
  constexpr double kHidden = 2 * (0x1p-24 + 4e-7 + 4096 * 3e-10);
  CHECK(first(rank).excess == doctest::Approx((1e-2 - kHidden) / (kHidden + 0x1p-24)).epsilon(1e-3));
  CHECK(count(rank, Origin::introduced) == 1);
  CHECK(count(rank, Origin::propagated) == 2);
  CHECK(rank.propagated_entry == "Functional.linear.2.forward");
  CHECK(rank.propagated_largest == doctest::Approx(2e-2));
  CHECK(rank.agreeing == 1);
}

TEST_CASE("a parameter that differs before it is used") {
  Chain chain;
  chain.weights[1] = rough(1.1, 1e-4, "[64, 64]");
  chain.outputs[1] = rough(3, 1e-4);
  chain.inputs[2] = rough(3, 1e-4);
  chain.outputs[2] = rough(4, 1e-4);
  const RankDiagnosis rank = diagnosed(chain.text());
  CHECK(first(rank).kind == Kind::parameter);
  CHECK(first(rank).entry == "Functional.linear.1.forward");
  CHECK(first(rank).place == "input.1");
  CHECK(first(rank).excess == doctest::Approx(1e-4 / (4 * 0x1p-24)).epsilon(1e-4));
  CHECK(rank.evidence == 1);
  SUBCASE("an ulp or two are the kernels'") {
    Chain near;
    near.weights[1] = rough(1.1, 1e-7, "[64, 64]");
    CHECK(no_evidence(diagnosed(near.text())));
  }
  SUBCASE("several are one line") {
    chain.weights[2] = rough(2.1, 1e-3, "[64, 64]");
    const RankDiagnosis both = diagnosed(chain.text());
    CHECK(both.evidence == 1);
    CHECK(first(both).concerned == 2);
  }
}

TEST_CASE("a running mean is called what it is") {
  Two two;
  two.forward("Functional.batch_norm.0.forward", {tensor(1), rough(0.2, 1e-2, "[64]"), tensor(0.9, "[64]")},
              {rough(1, 1e-2)}, {tensor(1), tensor(0.2, "[64]"), tensor(0.9, "[64]")}, {tensor(1)});
  const Finding found = first(diagnosed(two));
  CHECK(found.kind == Kind::parameter);
  CHECK(found.place == "input.1");
  CHECK(found.text.starts_with("input.1 is a running statistic "));
}

TEST_CASE("the norm of a square is off by more than that of its tensor") {
  const std::string shape = "[64, 64]";
  const double error = 1.5e-3;
  const double of_product = 7e-3;
  // The factors came in with their errors.
  const auto size_is_evidence = [&](double other) {
    Two two;
    const std::string one = tensor(1 + error, shape);
    const std::string two_or_one = tensor(other * (1 + error), shape);
    two.forward("Torch.exp.0.forward", {one}, {one}, {tensor(1, shape)}, {tensor(1, shape)});
    two.forward("Torch.exp.1.forward", {two_or_one}, {two_or_one}, {tensor(other, shape)},
                {tensor(other, shape)});
    two.forward("Tensor.mul.0.forward", {one, two_or_one}, {tensor(7 * (1 + of_product), shape)},
                {tensor(1, shape), tensor(other, shape)}, {tensor(7, shape)});
    const RankDiagnosis rank = diagnosed(two);
    return std::any_of(rank.findings.begin(), rank.findings.end(), [](const Finding& found) {
      return found.entry == "Tensor.mul.0.forward" && found.kind == Kind::gain && found.is_evidence();
    });
  };
  CHECK_FALSE(size_is_evidence(1));
  CHECK(size_is_evidence(2));
}

TEST_CASE("data from outside") {
  Chain chain;
  chain.inputs[0] = rough(1, 1e-3);
  for (std::size_t i = 0; i < 3; ++i) chain.outputs[i] = rough(2 + static_cast<double>(i), 1e-3);
  chain.inputs[1] = rough(2, 1e-3);
  chain.inputs[2] = rough(3, 1e-3);
  const Finding found = first(diagnosed(chain.text()));
  CHECK(found.kind == Kind::data);
  CHECK(found.entry == "Functional.linear.0.forward");
  CHECK(found.place == "input.0");
}

TEST_CASE("what something unrecorded changed") {
  Chain chain;
  chain.inputs[2] = rough(3, 1e-3);
  chain.outputs[2] = rough(4, 1e-3);
  const Finding found = first(diagnosed(chain.text()));
  CHECK(found.kind == Kind::unrecorded);
  CHECK(found.entry == "Functional.linear.2.forward");
  CHECK(found.text.find("Functional.linear.1.forward") != std::string::npos);
}

TEST_CASE("what is fed from elsewhere") {
  Chain chain;
  chain.inputs[2] = chain.outputs[0];
  chain.outputs[2] = rough(4, 0.3);
  const Finding found = first(diagnosed(chain.text()));
  CHECK(found.kind == Kind::feed);
  CHECK(found.entry == "Functional.linear.2.forward");
  CHECK(found.place == "input.0");
  CHECK(found.text.find("Functional.linear.0.forward, in golden from Functional.linear.1.forward") !=
        std::string::npos);
}

TEST_CASE("calls that have changed places are not excused by what comes later") {
  // linear, tanh, layer_norm; in golden layer_norm comes before tanh.
  const std::string wide =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "Max": 1.0, )"
      R"("Min": -1.0, "Mean": 0.1, "Norm": 9.0})";
  const std::string normal = tensor(1.1);
  Two two;
  two.target.forward("Functional.linear.0.forward", {tensor(1), tensor(0.1, "[64, 64]")}, {rough(2, kNoise)});
  two.target.forward("Torch.tanh.0.forward", {rough(2, kNoise)}, {wide});
  two.target.forward("Functional.layer_norm.0.forward", {wide}, {tensor(2.2)});
  two.golden.forward("Functional.linear.0.forward", {tensor(1), tensor(0.1, "[64, 64]")}, {tensor(2)});
  two.golden.forward("Functional.layer_norm.0.forward", {tensor(2)}, {normal});
  two.golden.forward("Torch.tanh.0.forward", {normal}, {tensor(0.6)});
  const auto construct = testing::modules_of({{"Functional.linear.0.forward", "Module.a.A.forward.0"},
                                              {"Torch.tanh.0.forward", "Module.a.A.forward.0"},
                                              {"Functional.layer_norm.0.forward", "Module.a.A.forward.0"}});
  for (const bool tensors : {false, true}) {
    const RankDiagnosis rank = diagnosed(two, tensors ? Configure(with_tensors) : Configure(), construct);
    CHECK(first(rank).is_evidence());
    CHECK(first(rank).entry == "Torch.tanh.0.forward");
    CHECK(first(rank).kind == Kind::feed);
  }
}

TEST_CASE("forms of another framework's calls are not evidence") {
  Chain chain;
  chain.arguments[1] = {scalar("int", "1")};
  chain.golden_arguments[1] = {scalar("str", "\"same\"")};
  chain.outputs[1] = rough(3, 1e-6);
  Two two = chain.text();
  two.target.forward("Primitive.shape_op.Shape.0.forward", {rough(4, kNoise)}, {});
  CHECK(first(diagnosed(two)).kind == Kind::argument);
  for (const char* framework : {"mindspore", "mindtorch"}) {
    two.framework = framework;
    CHECK(no_evidence(diagnosed(two)));
  }
  SUBCASE("a wrong result is") {
    chain.outputs[1] = rough(3, 1e-3);
    chain.inputs[2] = chain.outputs[1];
    chain.outputs[2] = rough(4, 1e-3);
    two = chain.text();
    two.framework = "mindspore";
    CHECK(first(diagnosed(two)).kind == Kind::introduced);
    CHECK(first(diagnosed(two)).entry == "Functional.linear.1.forward");
  }
  SUBCASE("a result of another precision is") {
    chain.outputs[1] = tensor(3, "[4, 64]", "Float16");
    chain.inputs[2] = chain.outputs[1];
    two = chain.text();
    two.framework = "mindspore";
    CHECK(first(diagnosed(two)).kind == Kind::dtype);
  }
}

TEST_CASE("what another framework computes by other operations") {
  const auto with = [](double error) {
    const std::string out = rough(3, error);
    Two two;
    two.target.forward("Primitive.matmul.MatMul.0.forward", {rough(2, kNoise)}, {out});
    two.golden.forward("Functional.linear.0.forward", {tensor(2)}, {tensor(3)});
    two.forward("Module.a.Dense.forward.0", {rough(2, kNoise)}, {out}, {tensor(2)}, {tensor(3)});
    two.forward("Functional.gelu.0.forward", {out}, {rough(4, error)}, {tensor(3)}, {tensor(4)});
    return two;
  };
  const auto construct =
      testing::modules_of({{"Primitive.matmul.MatMul.0.forward", "Module.a.Dense.forward.0"},
                           {"Functional.linear.0.forward", "Module.a.Dense.forward.0"}});
  Two two = with(5e-7);
  CHECK(first(diagnosed(two, {}, construct)).kind == Kind::exchanged);
  two.framework = "mindspore";
  CHECK(no_evidence(diagnosed(two, {}, construct)));
  two = with(1e-3);
  two.framework = "mindspore";
  const Finding found = first(diagnosed(two, {}, construct));
  CHECK(found.kind == Kind::introduced);
  CHECK(found.entry == "Module.a.Dense.forward.0");
}

TEST_CASE("an operation in place of another is named with both names") {
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), tensor(0.1, "[64, 64]")}, {rough(2, kNoise)},
              {tensor(1), tensor(0.1, "[64, 64]")}, {tensor(2)});
  const double size = 1.5;
  two.target.forward("Functional.gelu.0.forward", {rough(2, kNoise)}, {rough(size, 0.1)});
  two.golden.forward("Functional.silu.0.forward", {tensor(2)}, {tensor(size)});
  SUBCASE("with effect") {
    two.forward("Torch.exp.0.forward", {rough(size, 0.1)}, {rough(7, 0.2)}, {tensor(size)}, {tensor(7)});
    const RankDiagnosis rank = diagnosed(two);
    CHECK(first(rank).kind == Kind::exchanged);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Functional.gelu.0.forward");
    CHECK(first(rank).golden_entry == "Functional.silu.0.forward");
    CHECK(rank.evidence == 1);
  }
  SUBCASE("without") {
    two.forward("Torch.exp.0.forward", {rough(size, kNoise)}, {rough(7, 2e-7)}, {tensor(size)}, {tensor(7)});
    const RankDiagnosis rank = diagnosed(two);
    CHECK(no_evidence(rank));
    CHECK(first(rank).kind == Kind::exchanged);
  }
}

TEST_CASE("calls that could not be paired are not said to be others") {
  Two two;
  two.forward("Torch.exp.0.forward", {tensor(1)}, {rough(2, kNoise)}, {tensor(1)}, {tensor(2)});
  two.forward("Functional.gelu.0.forward", {rough(2, kNoise)}, {tensor(3)}, {tensor(2)}, {tensor(6)});
  two.forward("Torch.tanh.0.forward", {tensor(3)}, {rough(0.5, 0.4)}, {tensor(6)}, {tensor(0.5)});
  const Finding found = first(diagnosed(two, [](testing::Asked& asked) {
    Alignment alignment = *asked.rank.alignment;
    alignment.golden_of[1] = alignment.target_of[1] = pairing::kNone;
    for (const std::uint32_t item : asked.rank.target.apis[1].items())
      alignment.golden_item_of[item] = pairing::kNone;
    asked.rank.alignment = std::make_shared<const Alignment>(std::move(alignment));
  }));
  CHECK(found.text.starts_with("both runs call Functional.gelu here, but the calls could not be paired"));
  CHECK(found.confidence == Confidence::likely);
  CHECK(found.side.empty());
}

TEST_CASE("other calls right before a cast by unrecorded code are its cause") {
  Two two;
  two.target.forward("Tensor.__matmul__.0.forward", {tensor(1), tensor(0.5)}, {tensor(2)});
  two.golden.forward("Tensor.__mul__.0.forward", {tensor(1), tensor(0.5)}, {tensor(2)});
  two.forward("Tensor.cos.0.forward", {rough(2, 1e-3, "[4, 64]", "torch.bfloat16")},
              {rough(3, 2e-3, "[4, 64]", "torch.bfloat16")}, {tensor(2)}, {tensor(3)});
  for (int i = 1; i < 4; ++i)
    two.forward("Tensor.cos." + std::to_string(i) + ".forward", {tensor(10 + i)}, {tensor(20 + i)},
                {tensor(10 + i)}, {tensor(20 + i)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Tensor.__matmul__.0.forward");
  CHECK(first(rank).kind == Kind::exchanged);
  CHECK(first(rank).text.ends_with(
      "at Tensor.cos.0.forward, 0 before, where dtype of input.0 is torch.bfloat16, golden torch.float32"));
  CHECK(is_one_cause(rank));
}

TEST_CASE("an operation that only golden has keeps its place in the order") {
  Two two;
  two.forward("Torch.exp.0.forward", {tensor(1)}, {rough(2, kNoise)}, {tensor(1)}, {tensor(2)});
  two.golden.forward("Torch.mul.0.forward", {tensor(2)}, {tensor(5)});
  two.forward("Torch.tanh.0.forward", {rough(2, kNoise)}, {rough(0.5, 0.4)}, {tensor(5)}, {tensor(0.5)});
  const Finding found = first(diagnosed(two));
  CHECK(found.kind == Kind::removed);
  CHECK(found.entry == "Torch.mul.0.forward");
  CHECK(found.order == 2);
}

TEST_CASE("other random numbers") {
  Two two;
  two.forward("Functional.dropout.0.forward", {tensor(1)}, {rough(1.4, 0.5)}, {tensor(1)}, {tensor(1.4)});
  CHECK(first(diagnosed(two)).kind == Kind::random);
}

TEST_CASE("a decision that noise flips is a hint, and so is what follows") {
  Two two;
  two.forward("Torch.exp.0.forward", {tensor(1)}, {rough(2, kNoise)}, {tensor(1)}, {tensor(2)});
  two.forward("Torch.topk.0.forward", {rough(2, kNoise)},
              {tensor(2.2, "[4]"), rough(9, 0.4, "[4]", "torch.int64")}, {tensor(2)},
              {tensor(2.2, "[4]"), tensor(9, "[4]", "torch.int64")});
  two.forward("Torch.gather.0.forward", {rough(2, kNoise), rough(9, 0.4, "[4]", "torch.int64")},
              {rough(3, 0.5)}, {tensor(2), tensor(9, "[4]", "torch.int64")}, {tensor(3)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(no_evidence(rank));
  CHECK(first(rank).kind == Kind::decision);
}

TEST_CASE("gradients") {
  Chain chain;
  Two two = chain.text();
  SUBCASE("one that is introduced in a backward") {
    two.backward("Functional.linear.2.backward", {rough(1.5, kNoise)}, {rough(0.7, 1e-2)}, {tensor(1.5)},
                 {tensor(0.7)});
    const Finding found = first(diagnosed(two));
    CHECK(found.kind == Kind::introduced);
    CHECK(found.entry == "Functional.linear.2.backward");
  }
  SUBCASE("one that arrives wrong") {
    two.backward("Functional.linear.2.backward", {rough(1.5, 1e-2)}, {rough(0.7, 1e-2)}, {tensor(1.5)},
                 {tensor(0.7)});
    const Finding found = first(diagnosed(two));
    CHECK(found.kind == Kind::gradient);
    CHECK(found.place == "input.0");
  }
  SUBCASE("outputs in another order") {
    two.backward("Functional.linear.2.backward", {tensor(1.5)}, {tensor(0.7), tensor(0.2)}, {tensor(1.5)},
                 {tensor(0.2), tensor(0.7)});
    CHECK(no_evidence(diagnosed(two)));
  }
  SUBCASE("outputs of another number") {
    two.backward("Functional.linear.2.backward", {tensor(1.5)}, {tensor(0.7), tensor(0.2)}, {tensor(1.5)},
                 {tensor(0.2)});
    CHECK(no_evidence(diagnosed(two)));
  }
}

TEST_CASE("another parameter than golden takes, which is equal in both runs") {
  const auto with = [](double other_input) {
    const std::string e0 = tensor(0.1, "[64, 64]");
    const std::string e1 = tensor(0.2, "[64, 64]");
    Two two;
    for (DumpText* text : {&two.target, &two.golden}) {
      text->forward("Module.e.0.Linear.forward.0", {tensor(5)}, {tensor(6)}, {}, {named("weight", e0)});
      text->forward("Module.e.1.Linear.forward.0", {tensor(7)}, {tensor(8)}, {}, {named("weight", e1)});
    }
    two.forward("Functional.linear.0.forward", {rough(1, other_input), e1}, {rough(2, 0.5)}, {tensor(1), e0},
                {tensor(2)});
    return diagnosed(two);
  };
  const RankDiagnosis taken = with(0);
  CHECK(first(taken).kind == Kind::feed);
  CHECK(first(taken).confidence == Confidence::certain);
  CHECK(first(taken).text == "input.1 is e.1.weight, in golden e.0.weight, and both are as in golden");
  // With another input as well it is another call, as those of experts in another order.
  const RankDiagnosis paired = with(0.3);
  CHECK(first(paired).kind == Kind::data);
  CHECK(std::any_of(paired.notes.begin(), paired.notes.end(), [](const std::string& note) {
    return note.find("uses a parameter of another name than the call of golden") != std::string::npos;
  }));
}

TEST_CASE("another parameter than golden takes, where no module's are recorded") {
  const std::string e0 = tensor(0.1, "[64, 64]");
  const std::string e1 = tensor(0.2, "[64, 64]");
  const auto with = [&](const std::string& weight) {
    Two two;
    two.forward("Functional.relu.0.forward", {tensor(5)}, {tensor(1)}, {tensor(5)}, {tensor(1)});
    two.forward("Functional.linear.0.forward", {tensor(1), weight}, {rough(2, 0.5)}, {tensor(1), e0},
                {tensor(2)});
    two.forward("Functional.linear.1.forward", {tensor(1), e1}, {tensor(3)}, {tensor(1), e1}, {tensor(3)});
    return first(diagnosed(two));
  };
  CHECK(with(e1).text == "input.1 is the parameter that golden uses at Functional.linear.1.forward");
  CHECK(with(tensor(0.7, "[64, 64]")).kind == Kind::parameter);
}

TEST_CASE("gradients of parameters that cancel are noise, others are not") {
  const auto with = [](const std::string& weight, const std::string& bias) {
    Two two;
    for (DumpText* text : {&two.target, &two.golden}) {
      const bool ours = text == &two.target;
      text->forward("Module.fc.Linear.forward.0", {tensor(1)}, {tensor(2)}, {},
                    {named("weight", tensor(0.1, "[64, 64]")), named("bias", tensor(0.2, "[64]"))});
      text->backward("Module.fc.Linear.backward.0", {tensor(3)}, {tensor(1.1)});
      text->gradients("Module.fc.Linear.parameters_grad.0",
                      {named("bias", "[" + (ours ? bias : tensor(1e-8, "[64]")) + "]"),
                       named("weight", "[" + (ours ? weight : tensor(2, "[64, 64]")) + "]")});
    }
    return two;
  };
  const auto construct = testing::modules_of({{"Module.fc.Linear.forward.0", ""}});
  CHECK(no_evidence(diagnosed(with(tensor(2, "[64, 64]"), rough(1e-8, 1, "[64]")), {}, construct)));
  const Finding found =
      first(diagnosed(with(rough(2, 0.1, "[64, 64]"), rough(1e-8, 1, "[64]")), {}, construct));
  CHECK(found.entry == "Module.fc.Linear.parameters_grad.0");
  CHECK(found.place == "weight");
  CHECK(found.module == "fc");
}

TEST_CASE("the gradient of a softmax is small beside its terms where it hardly differs within a row") {
  const auto error_after = [](double left, double error) {
    const std::string y = tensor(0.1);
    Two two;
    two.forward("Tensor.softmax.0.forward", {rough(1, 1e-7)}, {y}, {tensor(1)}, {y});
    two.backward("Tensor.softmax.0.backward", {rough(1, 1e-7)}, {rough(0.3 * left, error)}, {tensor(1)},
                 {tensor(0.3 * left)});
    return diagnosed(two);
  };
  CHECK(no_evidence(error_after(1e-2, 2e-5)));
  CHECK(first(error_after(1, 2e-5)).entry == "Tensor.softmax.0.backward");
  CHECK(first(error_after(1e-2, 0.1)).entry == "Tensor.softmax.0.backward");
}

TEST_CASE("fused recurrent kernels approximate, and products may be computed in TF32") {
  const auto lstm = [](double error) {
    Two two;
    two.forward("VF.lstm.0.forward", {tensor(1)}, {rough(2, error)}, {tensor(1)}, {tensor(2)});
    return diagnosed(two, with_tensors);
  };
  CHECK(no_evidence(lstm(7e-6)));
  CHECK(first(lstm(1e-4)).text.ends_with("; products in TF32 have errors of this size"));
  CHECK_FALSE(first(lstm(1e-2)).text.ends_with("; products in TF32 have errors of this size"));
  const auto on = [](std::string_view target, std::string_view golden) {
    Two two;
    two.forward("VF.lstm.0.forward", {tensor(1)}, {rough(2, 1e-4)}, {tensor(1)}, {tensor(2)});
    const auto devices = [](std::string_view device) {
      return R"({"devices": [")" + std::string(device) + R"("]})";
    };
    two.target.training = devices(target);
    two.golden.training = devices(golden);
    return first(diagnosed(two, with_tensors)).text.ends_with("; products in TF32 have errors of this size");
  };
  CHECK(on("cpu", "cuda"));
  CHECK(on("npu", "cpu"));
  CHECK_FALSE(on("cpu", "cpu"));
  CHECK(is_product("conv2d"));
  CHECK(is_product("__matmul__"));
  CHECK_FALSE(is_product("relu"));
}

TEST_CASE("replay proves a fault and rules it out") {
  Chain chain;
  chain.outputs[1] = rough(3, 1e-4);
  struct Files : testing::NoFiles {
    Files(const Side& side, double ours, double theirs) : target(side), r(ours), golden_r(theirs) {}
    std::vector<Replayed> replay(std::uint32_t api, std::uint32_t) override {
      return {{target.apis[api].first + 2, r, golden_r, 1e-6}};
    }
    const Side& target;
    double r;
    double golden_r;
  };
  const auto replaying = [](double ours, double theirs) {
    return [=](Asked& asked) {
      with_tensors(asked);
      asked.reading = std::make_unique<Files>(asked.rank.target, ours, theirs);
    };
  };
  CHECK(first(diagnosed(chain.text(), with_tensors)).kind == Kind::introduced);
  const Finding guilty = first(diagnosed(chain.text(), replaying(1e-4, 1e-8)));
  CHECK(guilty.kind == Kind::replay);
  CHECK(guilty.confidence == Confidence::certain);
  CHECK(guilty.excess == doctest::Approx(4 * 1e-4 / 1e-6));
  CHECK(guilty.side == "this run computes with fewer bits, as TF32 does");
  CHECK(first(diagnosed(chain.text(), replaying(1e-8, 1e-4))).side ==
        "golden computes with fewer bits, as TF32 does");
  Two on_cpu = chain.text();
  on_cpu.target.training = R"({"devices": ["cpu"]})";
  CHECK(first(diagnosed(on_cpu, replaying(1e-4, 1e-8))).side == "this run's kernel is wrong");
  CHECK(first(diagnosed(on_cpu, replaying(1e-8, 1e-4))).side ==
        "golden computes with fewer bits, as TF32 does");
  CHECK(first(diagnosed(chain.text(), replaying(1e-2, 1e-8))).side == "this run's kernel is wrong");
  CHECK(first(diagnosed(chain.text(), replaying(1e-8, 1e-2))).side == "golden's kernel is wrong");
  const RankDiagnosis ruled_out = diagnosed(chain.text(), replaying(1e-8, 1e-8));
  CHECK(no_evidence(ruled_out));
  CHECK(ruled_out.explained[5] < ruled_out.error[5]);  // by what came in, not by what it does
  CHECK(first(diagnosed(chain.text(), replaying(1e-4, 1e-4))).kind == Kind::introduced);
  const auto never = [&](Asked& asked) {
    replaying(1e-4, 1e-8)(asked);
    asked.options.replay = ReplayMode::never;
  };
  CHECK(first(diagnosed(chain.text(), never)).kind == Kind::introduced);
}

TEST_CASE("a third dump's noise explains as much") {
  Chain chain;
  chain.outputs[1] = rough(3, 1e-4);
  struct Noisy : testing::NoFiles {
    Noise noise(std::uint32_t) override { return {.error = 1e-4}; }
  };
  const auto noisy = [](Asked& asked) {
    with_tensors(asked);
    asked.reading = std::make_unique<Noisy>();
  };
  CHECK(no_evidence(diagnosed(chain.text(), noisy)));
}

TEST_CASE("a mask that flips at the kink of an operation is not a fault") {
  Two two;
  two.forward("Functional.relu.0.forward", {rough(1, 1e-4)}, {rough(2, 1e-4)}, {tensor(1)}, {tensor(2)});
  two.forward("Functional.gelu.0.forward", {rough(2, 1e-4)}, {rough(3, 1e-4)}, {tensor(2)}, {tensor(3)});
  two.target.backward("Functional.relu.0.backward", {rough(5, 1e-4)}, {rough(6, 1e-2)});
  two.golden.backward("Functional.relu.0.backward", {tensor(5)}, {tensor(6)});
  const RankDiagnosis rank = diagnosed(two, with_tensors);
  for (const Finding& found : rank.findings) CHECK(found.entry != "Functional.relu.0.backward");
}

TEST_CASE("checksums name the first difference as a hint") {
  const auto with = [](std::string_view in, std::string_view out) {
    const auto sum = [](std::string_view text) {
      return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "md5": ")" +
             std::string(text) + "\"}";
    };
    return std::make_pair(Texts{sum(in)}, Texts{sum(out)});
  };
  Two two;
  const auto [in, out] = with("aaaaaaaa", "bbbbbbbb");
  const auto [golden_in, golden_out] = with("aaaaaaaa", "cccccccc");
  two.forward("Torch.exp.0.forward", in, out, golden_in, golden_out);
  const RankDiagnosis rank = diagnosed(two);
  CHECK(no_evidence(rank));
  CHECK(first(rank).kind == Kind::checksum);
  CHECK(count(rank, Origin::equal) == 1);
  CHECK(count(rank, Origin::not_compared) == 1);
}

TEST_CASE("NaN that one run has alone is reported, from its first entry, whatever the culprit is") {
  const std::string nan =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "Max": NaN, "Min": NaN, )"
      R"("Mean": NaN, "Norm": NaN})";
  Two two;
  two.forward("Functional.layer_norm.0.forward", {tensor(1), scalar("float", "0.0")}, {rough(2, 0.1)},
              {tensor(1), scalar("float", "1e-05")}, {tensor(2)});
  two.forward("Torch.rsqrt.0.forward", {rough(2, 0.1)}, {nan}, {tensor(2)}, {tensor(3)});
  const Finding culprit = first(diagnosed(two));
  CHECK(culprit.entry == "Functional.layer_norm.0.forward");
  CHECK(culprit.text.ends_with("; this run has NaN from Torch.rsqrt.0.forward on, golden none"));
  // A gradient that arrives as NaN, and golden's NaN that this run has not.
  Two back;
  back.forward("Torch.exp.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  back.backward("Torch.exp.0.backward", {tensor(3)}, {tensor(4)}, {nan}, {nan});
  CHECK(
      first(diagnosed(back)).text.starts_with("the gradient of its output arrives with no NaN, golden has"));
}

TEST_CASE("nothing, and what is not finite") {
  const RankDiagnosis empty = diagnosed(Two());
  CHECK(empty.findings.empty());
  Two one_sided;
  one_sided.golden.forward("Torch.exp.0.forward", {tensor(1)}, {tensor(2)});
  CHECK(no_evidence(diagnosed(one_sided)));

  const std::string nan =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "Max": NaN, "Min": NaN, )"
      R"("Mean": NaN, "Norm": NaN})";
  Two both;
  both.forward("Torch.exp.0.forward", {tensor(1)}, {nan}, {tensor(1)}, {nan});
  both.forward("Torch.exp.1.forward", {nan}, {nan}, {nan}, {nan});
  CHECK(no_evidence(diagnosed(both)));

  Two introduced;
  introduced.forward("Torch.exp.0.forward", {tensor(1)}, {nan}, {tensor(1)}, {tensor(2)});
  introduced.forward("Torch.tanh.0.forward", {nan}, {nan}, {tensor(2)}, {tensor(3)});
  const RankDiagnosis rank = diagnosed(introduced);
  CHECK(first(rank).entry == "Torch.exp.0.forward");
  CHECK(std::isinf(first(rank).excess));
  CHECK(first(rank).text.starts_with("its output has NaN, golden none; its inputs differ by 0"));
  CHECK(rank.evidence == 1);
}

}  // namespace msprobe::diagnosis::rank_diagnosis_test
