// SPDX-License-Identifier: Apache-2.0
// A rank through its steps, and as far as its first certain evidence.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/sentences.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::rank_steps_test {
namespace {

using dump::Side;
using testing::Asked;
using testing::Chain;
using testing::Configure;
using testing::count;
using testing::diagnosed;
using testing::first;
using testing::kNoise;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;
using testing::with_tensors;

/// The step of every parameter.
struct Stepped : testing::NoFiles {
  explicit Stepped(const Update& all) : update_of_all(all) {}
  std::optional<Update> update(std::uint32_t, std::uint32_t) override { return update_of_all; }
  Update update_of_all;
};

Configure stepped(const Update& update) {
  return [=](Asked& asked) {
    with_tensors(asked);
    asked.reading = std::make_unique<Stepped>(update);
  };
}

/// Stops at certain evidence, and counts how often each entry under test is measured.
Configure stopping(std::vector<int>& measured, const Configure& configure = with_tensors) {
  return [&measured, configure](Asked& asked) {
    configure(asked);
    asked.options.first = true;
    measured.assign(asked.rank.target.apis.size(), 0);
    asked.measure_entry = [&measured](std::uint32_t api) { ++measured[api]; };
  };
}

}  // namespace

TEST_CASE("steps") {
  Chain chain;
  History history;
  const auto updated = [](double gain) { return stepped({4096, 1e-3, gain}); };
  REQUIRE(no_evidence(diagnosed(chain.text(), history, with_tensors)));
  for (std::size_t i = 0; i < 3; ++i)
    chain.weights[i] = rough(0.1 + static_cast<double>(i), 1e-5, "[64, 64]");
  SUBCASE("noise of an update") {
    CHECK(no_evidence(diagnosed(chain.text(), history, updated(1.0001))));
  }
  SUBCASE("a wrong setting is the optimizer's") {
    const Finding found = first(diagnosed(chain.text(), history, updated(1.1)));
    CHECK(found.kind == Kind::optimizer);
    CHECK(found.concerned == 3);
    CHECK(found.entry == "Functional.linear.0.forward");
  }
  SUBCASE("a factor is printed with the digits that show it") {
    const Finding found = first(diagnosed(chain.text(), history, updated(1.0041)));
    CHECK(found.text == "optimizer: the step of 3 parameters is 1.0041 times golden's");
  }
  SUBCASE("parameters follow from evidence of an earlier step") {
    history.evidence = true;
    chain.weights[1] = rough(1.1, 0.5, "[64, 64]");
    const RankDiagnosis rank = diagnosed(chain.text(), history, updated(1.1));
    for (const Finding& found : rank.findings) CHECK(found.downstream);
  }
}

TEST_CASE("a rank stops at its first certain evidence") {
  Chain chain;
  chain.arguments[1] = {scalar("int", "2")};
  chain.golden_arguments[1] = {scalar("int", "3")};
  chain.outputs[1] = chain.inputs[2] = rough(3, 1e-2);
  chain.outputs[2] = rough(4, 1e-2);
  std::vector<int> asked;
  SUBCASE("and asks for nothing after it") {
    const RankDiagnosis whole = diagnosed(chain.text(), with_tensors);
    History history;
    const RankDiagnosis rank = diagnosed(chain.text(), history, stopping(asked));
    CHECK(asked == std::vector<int>{1, 1, 0});
    CHECK(history.certain);
    CHECK(rank.stopped);
    CHECK(rank.looked_at == 2);
    CHECK(rank.left_out == 1);
    CHECK(to_json(first(rank)) == to_json(first(whole)));
    CHECK(count(rank, Origin::not_compared) == count(whole, Origin::not_compared) + 3);
    CHECK(std::isnan(rank.error[7]));
    CHECK(whole.error[7] > 0);
    CHECK(rank.origin[7] == Origin::not_compared);
    CHECK(!whole.stopped);
    CHECK(whole.left_out == 0);
  }
  SUBCASE("but not at what is likely") {
    Chain introduced;
    introduced.outputs[1] = introduced.inputs[2] = rough(3, 1e-2);
    History history;
    const RankDiagnosis rank = diagnosed(introduced.text(), history, stopping(asked));
    CHECK(first(rank).confidence == Confidence::likely);
    CHECK(asked == std::vector<int>{1, 1, 1});
    CHECK(!rank.stopped);
    CHECK(!history.certain);
  }
  SUBCASE("nor while what one side alone runs may still show its effect") {
    Two two;
    const std::string half = tensor(1, "[4, 64]", "torch.float16");
    two.forward("Functional.linear.0.forward", {tensor(1)}, {rough(2, kNoise)}, {tensor(1)}, {tensor(2)});
    two.target.forward("Functional.relu.0.forward", {rough(2, kNoise)}, {tensor(5)});
    two.forward("Torch.clone.0.forward", {half}, {half}, {tensor(1)}, {tensor(1)});
    two.forward("Functional.gelu.0.forward", {rough(6, 1e-2)}, {rough(7, 1e-2)}, {tensor(6)}, {tensor(7)});
    two.forward("Functional.gelu.1.forward", {rough(7, 1e-2)}, {rough(8, 1e-2)}, {tensor(7)}, {tensor(8)});
    const Finding found = first(diagnosed(two, with_tensors));
    History history;
    const RankDiagnosis rank = diagnosed(two, history, stopping(asked));
    CHECK(found.kind == Kind::added);
    CHECK(to_json(first(rank)) == to_json(found));
    CHECK(rank.looked_at == 4);
  }
  SUBCASE("a gradient has its module's own entries read ahead of their turn") {
    Two two;
    two.forward("Module.fc.Linear.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    two.target.gradients("Module.fc.Linear.parameters_grad.0", {named("weight", "[" + tensor(1) + "]")});
    two.golden.gradients("Module.fc.Linear.parameters_grad.0", {named("weight", "[" + tensor(1) + "]")});
    two.backward("Functional.relu.0.backward", {tensor(3)}, {tensor(3)}, {tensor(3)}, {tensor(3)});
    two.backward("Module.fc.Linear.backward.0", {tensor(3)}, {tensor(4)}, {tensor(3)}, {tensor(4)});
    History history;
    CHECK(!diagnosed(two, history, stopping(asked)).stopped);
    CHECK(asked == std::vector<int>{1, 1, 1, 1});
  }
}

TEST_CASE("after a step, parameters are judged together before a rank stops") {
  Chain chain;
  for (std::size_t i = 0; i < 3; ++i)
    chain.weights[i] = rough(0.1 + static_cast<double>(i), 1e-3, "[64, 64]");
  Two two = chain.text();
  two.backward("Functional.linear.2.backward", {tensor(9)}, {tensor(9)}, {tensor(9)}, {tensor(9)});
  two.backward("Functional.linear.1.backward", {tensor(9)}, {tensor(9)}, {tensor(9)}, {tensor(9)});
  std::vector<int> asked;
  SUBCASE("in a later step") {
    History history;
    history.steps = 1;
    const RankDiagnosis rank = diagnosed(two, history, stopping(asked, stepped({4096, 6, 7})));
    CHECK(first(rank).kind == Kind::optimizer);
    CHECK(first(rank).concerned == 3);
    CHECK(asked == std::vector<int>{1, 1, 1, 1, 0});
    CHECK(rank.left_out == 1);
  }
  SUBCASE("in the first one there was no optimizer") {
    History history;
    const RankDiagnosis rank = diagnosed(two, history, stopping(asked));
    CHECK(first(rank).kind == Kind::parameter);
    CHECK(asked == std::vector<int>{1, 0, 0, 0, 0});
  }
}

TEST_CASE("steps, by statistics") {
  Chain chain;
  History history;
  REQUIRE(no_evidence(diagnosed(chain.text(), history)));
  const auto weights = [](const std::vector<double>& factors) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < factors.size(); ++i)
      texts.push_back(tensor((0.1 + static_cast<double>(i)) * factors[i], "[64, 64]"));
    return texts;
  };
  const std::vector<std::string> golden = weights({1.0002, 1.0002, 1.0002});
  const auto step = [&](const std::vector<double>& factors) {
    const std::vector<std::string> ours = weights(factors);
    Two two;
    for (std::size_t i = 0; i < 3; ++i) {
      two.forward("Functional.linear." + std::to_string(i) + ".forward", {chain.inputs[i], ours[i]},
                  {chain.outputs[i]}, {i == 0 ? tensor(1) : tensor(1 + static_cast<double>(i)), golden[i]},
                  {tensor(2 + static_cast<double>(i))});
    }
    return two;
  };
  SUBCASE("as in golden, but for noise") {
    CHECK(no_evidence(diagnosed(step({1.0002001, 1.0001999, 1.0002}), history)));
  }
  SUBCASE("one was not updated") {
    const Finding found = first(diagnosed(step({1.0002, 1, 1.0002}), history));
    CHECK(found.kind == Kind::parameter);
    CHECK(found.entry == "Functional.linear.1.forward");
    CHECK(found.place == "input.1");
    CHECK(found.confidence == Confidence::certain);
  }
  SUBCASE("unless a decision may have left it without work") {
    history.flipped = true;
    CHECK(no_evidence(diagnosed(step({1.0002, 1, 1.0002}), history)));
  }
  SUBCASE("all went further") {
    const Finding found = first(diagnosed(step({1.00022, 1.00022, 1.00022}), history));
    CHECK(found.kind == Kind::optimizer);
    CHECK(found.concerned == 3);
    CHECK(found.text.find("1.1 times") != std::string::npos);
  }
}

std::string vector_of(double largest, double least, double mean, double norm) {
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [256], "Max": )" +
         python_repr(largest) + ", \"Min\": " + python_repr(least) + ", \"Mean\": " + python_repr(mean) +
         ", \"Norm\": " + python_repr(norm) + "}";
}

TEST_CASE("a bias whose first steps have other signs is no other parameter") {
  const auto second = [](double mean, double largest) {
    History history;
    Two two;
    const std::string zeros = vector_of(0, 0, 0, 0);
    two.forward("Functional.layer_norm.0.forward", {tensor(1), tensor(4, "[256]"), zeros}, {tensor(2)},
                {tensor(1), tensor(4, "[256]"), zeros}, {tensor(2)});
    two.forward("Functional.layer_norm.1.forward", {tensor(2), tensor(5, "[256]"), zeros}, {tensor(3)},
                {tensor(2), tensor(5, "[256]"), zeros}, {tensor(3)});
    REQUIRE(no_evidence(diagnosed(two, history)));
    Two next;
    const std::string golden = vector_of(2e-3, -2e-3, 3.3e-4, 0.032);
    const std::string other = vector_of(1e-3, -1e-3, 3.3e-4, 0.016);
    next.forward("Functional.layer_norm.0.forward",
                 {tensor(1), tensor(4, "[256]"), vector_of(largest, -largest, mean, 16 * largest)},
                 {tensor(2)}, {tensor(1), tensor(4, "[256]"), golden}, {tensor(2)});
    next.forward("Functional.layer_norm.1.forward", {tensor(2), tensor(5, "[256]"), other}, {tensor(3)},
                 {tensor(2), tensor(5, "[256]"), other}, {tensor(3)});
    return diagnosed(next, history);
  };
  CHECK(no_evidence(second(2.5e-4, 2e-3)));
  CHECK(first(second(2.5e-4, 1e-3)).kind == Kind::feed);  // it is the other layer's
}

TEST_CASE("the first step of a norm's weight hides signs, which change the norm of a product") {
  const auto second = [](double error) {
    History history;
    const auto step = [&](const std::string& weight, double off) {
      Two two;
      for (testing::DumpText* side : {&two.target, &two.golden}) {
        const bool ours = side == &two.target;
        const std::string product = tensor(3.3 * (1 + (ours ? off : 0)), "[64, 256]");
        side->forward("Tensor.__mul__.0.forward", {tensor(3, "[64, 256]"), weight}, {product});
        side->forward("Module.norm.Norm.forward.0", {tensor(3, "[64, 256]")}, {product}, {},
                      {named("weight", weight)});
        side->gradients("Module.norm.Norm.parameters_grad.0",
                        {named("weight", "[" + rough(5, ours ? 1e-2 : 0, "[256]") + "]")});
      }
      return diagnosed(two, history);
    };
    step(vector_of(1, 1, 1, 16), 0);
    history.evidence = false;  // the gradient's error stands for those of another kernel
    return step(vector_of(1.001, 0.999, 1.00007, 16.0012), error);
  };
  const auto at_product = [](const RankDiagnosis& rank) {
    return std::any_of(rank.findings.begin(), rank.findings.end(), [](const Finding& each) {
      return each.is_evidence() && each.entry == "Tensor.__mul__.0.forward";
    });
  };
  CHECK_FALSE(at_product(second(2.8e-6)));
  CHECK(at_product(second(2e-3)));
}

TEST_CASE("integers do not drift") {
  constexpr double kDrift = 1e-4;
  Chain chain;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto size = static_cast<double>(i);
    chain.weights[i] = rough(0.1 + size, kDrift, "[64, 64]");
    chain.outputs[i] = rough(2 + size, kDrift);
    if (i > 0) chain.inputs[i] = rough(1 + size, kDrift);
  }
  Two two = chain.text();
  const std::string dtype = "torch.int64";
  const auto loss = [&](const std::string& labels) {
    two.forward("Functional.cross_entropy.0.forward", {rough(4, kDrift), labels}, {rough(5, kDrift)},
                {tensor(4), tensor(9, "[12]", dtype)}, {tensor(5)});
  };
  const auto late = [](Asked& asked) { asked.at_step(1); };
  SUBCASE("labels that differ are evidence") {
    loss(rough(9, 1e-2, "[12]", dtype));
    const Finding found = first(diagnosed(two, late));
    CHECK(found.kind == Kind::data);
    CHECK(found.place == "input.1");
    CHECK(found.confidence == Confidence::likely);
  }
  SUBCASE("labels that are equal are not evidence") {
    loss(tensor(9, "[12]", dtype));
    CHECK(no_evidence(diagnosed(two, late)));
  }
  SUBCASE("views of parameters do, as parameters do") {
    const std::string trained = R"(, "requires_grad": true)";
    const std::string ours = rough(6, kDrift, "[8, 64]", "torch.float32", trained);
    two.forward("Tensor.__add__.0.forward", {rough(4, kDrift), ours}, {rough(5, kDrift)},
                {tensor(4), tensor(6, "[8, 64]", "torch.float32", trained)}, {tensor(5)});
    CHECK(no_evidence(diagnosed(two, late)));
  }
}

TEST_CASE("states of an optimizer that are equal on one side alone do not come from each other") {
  Two two = Chain().text();
  two.backward("Functional.linear.2.backward", {rough(6, kNoise)}, {rough(7, 3e-6)}, {tensor(6)},
               {tensor(7)});
  const auto decay = [&](int call, const std::string& state, const std::string& golden) {
    two.forward("Tensor.mul_." + std::to_string(call) + ".forward", {state}, {state}, {golden}, {golden});
  };
  // In golden they are equal bit by bit, here nearly.
  decay(0, rough(8, kNoise), tensor(8));
  decay(1, rough(8, 1e-5), tensor(8));
  CHECK(no_evidence(diagnosed(two)));
}

TEST_CASE("a step that one side ends early is reported") {
  Two two = Chain().text();
  for (int i = 9; i >= 0; --i) {
    const std::string name = "Functional.linear." + std::to_string(i) + ".backward";
    two.golden.backward(name, {tensor(6 + i)}, {tensor(7 + i)});
  }
  for (const bool exchanged : {false, true}) {
    CAPTURE(exchanged);
    if (exchanged) std::swap(two.target, two.golden);
    const RankDiagnosis rank = diagnosed(two);
    CHECK(no_evidence(rank));
    REQUIRE(rank.notes.size() == 1);
    CHECK(rank.notes[0].starts_with(exchanged ? "golden ends early" : "this run ends early"));
    CHECK(
        rank.notes[0].find(", before its backward, after Functional.linear.2.forward: the run failed, or its "
                           "recording was stopped there") != std::string::npos);
    CHECK(rank.notes[0].find(" 10 more entries") != std::string::npos);
    const std::vector<Line> lines = answer(conclude({rank}));
    CHECK(lines.front().name ==
          std::string("no culprit, but ") + (exchanged ? "golden" : "this run") + " ends early");
    CHECK(lines.front().text.find(", before its backward, after Functional.linear.2.forward: ") !=
          std::string::npos);
    CHECK(std::none_of(lines.begin() + 1, lines.end(), [](const Line& line) { return line.heads; }));
  }
}

TEST_CASE("what came in as data is data in later calls, whatever has happened since") {
  const std::string no_grad = R"(, "requires_grad": false)";
  const std::string grad = R"(, "requires_grad": true)";
  const auto part = [&](Two& two, int call, double error) {
    const std::string number = std::to_string(call);
    const std::string data = tensor(1 + call, "[4, 64]", "torch.float32", no_grad);
    const std::string out = tensor(3 + call, "[4, 64]", "torch.bfloat16", grad);
    two.forward("Functional.linear." + number + ".forward",
                {rough(1 + call, error, "[4, 64]", "torch.float32", no_grad), tensor(0.1, "[64, 64]")},
                {rough(3 + call, 3e-3, "[4, 64]", "torch.bfloat16", grad)}, {data, tensor(0.1, "[64, 64]")},
                {out});
  };
  const auto construct = testing::modules_of({{"Functional.linear.0.forward", "Module.a.A.forward.0"},
                                              {"Functional.linear.1.forward", "Module.a.A.forward.1"}});
  Two right;
  part(right, 0, 0);
  part(right, 1, 0);
  CHECK(no_evidence(diagnosed(right, {}, construct)));
  Two wrong;
  part(wrong, 0, 0);
  part(wrong, 1, 2e-2);
  const Finding found = first(diagnosed(wrong, {}, construct));
  CHECK(found.kind == Kind::data);
  CHECK(found.entry == "Functional.linear.1.forward");
  CHECK(found.is_evidence());
}

}  // namespace msprobe::diagnosis::rank_steps_test
