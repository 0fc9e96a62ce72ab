// SPDX-License-Identifier: Apache-2.0
// Noise and another layout make differences in copies of parameters, states, and gradients on their way.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::inherited_errors_test {
using testing::Asked;
using testing::Construct;
using testing::diagnosed;
using testing::first;
using testing::modules_of;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::tensor;
using testing::Two;

namespace {

bool says(const RankDiagnosis& rank, std::string_view text) {
  return std::any_of(rank.notes.begin(), rank.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

/// The optimizer's calls of a step, and what is around them.
Construct optimizer_of(std::initializer_list<std::string_view> entries) {
  dump::ConstructTable table;
  for (const std::string_view entry : entries) table.add(entry, "optimizer");
  return std::make_shared<const dump::ConstructBeside>(std::move(table));
}

void both_sides(Asked& asked) {
  asked.rank.golden_construct = asked.rank.target_construct;
}

}  // namespace

TEST_CASE(
    "a parameter that an optimizer has updated in the step differs by what rounding makes of its step") {
  const auto used_again = [](double error, bool updated) {
    const std::string weight = tensor(0.1, "[64, 64]");
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1), weight}, {tensor(2)}, {tensor(1), weight},
                {tensor(2)});
    if (updated)
      two.forward("Tensor.add_.0.forward", {tensor(0.3, "[64]"), tensor(0.2, "[64]")}, {tensor(0.5, "[64]")},
                  {tensor(0.3, "[64]"), tensor(0.2, "[64]")}, {tensor(0.5, "[64]")});
    two.forward("Functional.linear.1.forward", {tensor(3), rough(0.11, error, "[64, 64]")}, {rough(4, error)},
                {tensor(3), tensor(0.11, "[64, 64]")}, {tensor(4)});
    return diagnosed(two, {}, optimizer_of({"Tensor.add_.0.forward"}));
  };
  CHECK(no_evidence(used_again(1e-4, true)));
  CHECK(first(used_again(1e-4, false)).kind == Kind::parameter);
  CHECK(first(used_again(0.2, true)).kind == Kind::parameter);
}

TEST_CASE("an optimizer divides by what may be near zero, which a norm shows") {
  const auto stepped = [](std::string_view call) {
    Two two;
    const std::string entry = "Tensor." + std::string(call) + ".0.forward";
    two.forward(entry, {tensor(1), rough(0.2, 2e-7), tensor(0.3)}, {tensor(1 + 6e-6)},
                {tensor(1), tensor(0.2), tensor(0.3)}, {tensor(1)});
    return diagnosed(two, {}, optimizer_of({entry}));
  };
  CHECK(no_evidence(stepped("addcdiv_")));
  Two alone;  // a division that is no optimizer's
  alone.forward("Tensor.addcdiv_.0.forward", {tensor(1), rough(0.2, 2e-7), tensor(0.3)}, {tensor(1 + 6e-6)},
                {tensor(1), tensor(0.2), tensor(0.3)}, {tensor(1)});
  CHECK(no_evidence(diagnosed(alone)));
  Two two;  // a product outside of an optimizer
  two.forward("Tensor.addcmul_.0.forward", {tensor(1), rough(0.2, 2e-7), tensor(0.3)}, {tensor(1 + 6e-6)},
              {tensor(1), tensor(0.2), tensor(0.3)}, {tensor(1)});
  CHECK(first(diagnosed(two)).kind == Kind::gain);
}

TEST_CASE("a fused step rounds otherwise, and the average of weights shows it first") {
  const auto averaged = [](double error) {
    Two two;
    two.target.forward("Torch._fused_adamw_.0.forward", {tensor(1), tensor(0.2)}, {rough(1.1, error)});
    two.golden.forward("Tensor.addcdiv_.0.forward", {tensor(1), tensor(0.2), tensor(0.3)}, {tensor(1.1)});
    two.forward("Tensor.add_.0.forward", {tensor(0.9), rough(1.1, error)}, {rough(1.01, error / 10)},
                {tensor(0.9), tensor(1.1)}, {tensor(1.01)});
    return diagnosed(two, both_sides,
                     optimizer_of({"Torch._fused_adamw_.0.forward", "Tensor.addcdiv_.0.forward"}));
  };
  CHECK(no_evidence(averaged(1e-6)));
  const Finding found = first(averaged(0.05));
  CHECK(found.kind == Kind::exchanged);
  CHECK(found.confidence == Confidence::certain);
}

TEST_CASE("what is made of noise is noise in the next step") {
  // An average takes the parameter that was updated by a gradient that is nothing beside the other.
  const auto next_step = [](bool by_noise) {
    const auto layer = [](Two& two, const std::string& bias, const std::string& golden) {
      two.forward("Functional.linear.0.forward", {tensor(1), tensor(0.7, "[64, 64]"), bias}, {tensor(3)},
                  {tensor(1), tensor(0.7, "[64, 64]"), golden}, {tensor(3)});
    };
    Two two;
    layer(two, tensor(0.30999, "[64]"), tensor(0.30999, "[64]"));
    two.forward("Tensor.lerp_.0.forward", {tensor(0.9, "[64]"), tensor(0.8, "[64]")}, {tensor(2, "[64]")},
                {tensor(0.9, "[64]"), tensor(0.8, "[64]")}, {tensor(2, "[64]")});
    if (by_noise) {
      two.forward("Tensor.lerp_.1.forward", {tensor(0.1, "[64]"), tensor(1.5e-8, "[64]")},
                  {rough(0.11, 0.1, "[64]")}, {tensor(0.1, "[64]"), tensor(1e-8, "[64]")},
                  {tensor(0.11, "[64]")});
      two.forward("Tensor.add_.0.forward", {tensor(0.3, "[64]"), rough(0.11, 0.1, "[64]")},
                  {rough(0.31, 0.05, "[64]")}, {tensor(0.3, "[64]"), tensor(0.11, "[64]")},
                  {tensor(0.31, "[64]")});
    }
    const Construct modules = optimizer_of({"Tensor.lerp_.0.forward", "Tensor.lerp_.1.forward"});
    History history;
    REQUIRE(no_evidence(diagnosed(two, history, both_sides, modules)));
    Two next;
    layer(next, rough(0.31, 0.05, "[64]"), tensor(0.31, "[64]"));
    return diagnosed(next, history, both_sides, modules);
  };
  CHECK(no_evidence(next_step(true)));
  const Finding found = first(next_step(false));
  CHECK(found.kind == Kind::parameter);
  CHECK(found.place == "input.2");
}

TEST_CASE("a running statistic follows what came in before") {
  const auto running = [](double seen) {
    const auto layer = [](const std::string& mean, const std::string& golden) {
      Two two;
      two.forward("Functional.batch_norm.0.forward", {tensor(1), mean, tensor(0.9, "[64]")}, {tensor(2)},
                  {tensor(1), golden, tensor(0.9, "[64]")}, {tensor(2)});
      return two;
    };
    History history;
    REQUIRE(no_evidence(diagnosed(layer(tensor(0.199999, "[64]"), tensor(0.199999, "[64]")), history)));
    history.forward = seen;
    return diagnosed(layer(rough(0.2, 2e-2, "[64]"), tensor(0.2, "[64]")), history);
  };
  CHECK(no_evidence(running(4e-3)));
  CHECK(first(running(0)).kind == Kind::parameter);
}

TEST_CASE("a running statistic is what the call before left in it") {
  const auto call = [](Two& two, int number, const std::string& mean, const std::string& golden,
                       std::string_view momentum) {
    const std::string input = tensor(1, "[4, 64]", "torch.bfloat16");
    const auto arguments = [&](const std::string& running, std::string_view weight) {
      return testing::Texts{input,
                            running,
                            tensor(0.9, "[64]"),
                            tensor(0.5, "[64]"),
                            tensor(0.4, "[64]"),
                            testing::scalar("bool", "true"),
                            testing::scalar("float", weight)};
    };
    two.forward("Functional.batch_norm." + std::to_string(number) + ".forward", arguments(mean, momentum),
                {tensor(2)}, arguments(golden, "0.1"), {tensor(2)});
  };
  const Construct modules =
      modules_of({{"Functional.batch_norm.0.forward", "Module.bn.BatchNorm1d.forward.0"},
                  {"Functional.batch_norm.1.forward", "Module.bn.BatchNorm1d.forward.1"}});
  const auto running = [&](bool next_step, double error, std::string_view momentum) {
    const std::string before = tensor(0.2, "[64]");
    const std::string mean = rough(0.21, error, "[64]");
    const std::string golden = tensor(0.21, "[64]");
    Two two;
    History history;
    call(two, 0, before, before, momentum);
    if (!next_step) {
      call(two, 1, mean, golden, momentum);
      return diagnosed(two, history, both_sides, modules);
    }
    REQUIRE(no_evidence(diagnosed(two, history, both_sides, modules)));
    Two next;
    call(next, 0, mean, golden, momentum);
    return diagnosed(next, history, both_sides, modules);
  };
  for (const bool next_step : {false, true}) {
    CAPTURE(next_step);
    CHECK(no_evidence(running(next_step, 5e-3, "0.1")));
    const Finding kernel = first(running(next_step, 0.3, "0.1"));
    CHECK(kernel.kind == Kind::parameter);
    CHECK(kernel.entry == "Functional.batch_norm.0.forward");
    CHECK(kernel.text.starts_with("input.1 is a running statistic and differs by "));
    const RankDiagnosis momentum = running(next_step, 0.3, "0.9");
    CHECK(first(momentum).kind == Kind::argument);
    CHECK(first(momentum).entry == "Functional.batch_norm.0.forward");
    CHECK(testing::is_one_cause(momentum));
  }
}

TEST_CASE("the extremes of a cosine hide what rounding makes of large arguments") {
  const auto embedding = [](const std::string& argument, double size, double cosine, double error) {
    Two two;
    two.forward("Torch.cos.0.forward", {argument}, {rough(0.3, cosine)}, {tensor(size)}, {tensor(0.3)});
    two.forward("Functional.linear.0.forward", {rough(0.3, cosine), tensor(0.7, "[64, 64]")},
                {rough(2, error)}, {tensor(0.3), tensor(0.7, "[64, 64]")}, {tensor(2)});
    return diagnosed(two);
  };
  const auto finer = [](double size) { return rough(size, 5e-8, "[4, 64]", "torch.float64"); };
  CHECK(no_evidence(embedding(rough(300, 2e-7), 300, 1e-7, 5e-5)));
  CHECK(no_evidence(embedding(finer(300), 300, 2e-6, 1e-5)));
  CHECK(first(embedding(rough(0.3, 2e-7), 0.3, 1e-7, 5e-5)).entry == "Functional.linear.0.forward");
  CHECK(first(embedding(finer(0.3), 0.3, 2e-6, 0)).kind == Kind::dtype);
}

TEST_CASE("a gradient from unrecorded code was rounded to the type in which its parameter is used") {
  const auto norm_of_gradient = [](std::string_view dtype, double error) {
    const std::string weight = tensor(0.7, "[64, 64]");
    const std::string output = tensor(2, "[4, 64]", dtype);
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1), weight}, {output}, {tensor(1), weight}, {output});
    two.forward("Torch._foreach_norm.0.forward", {rough(0.3, error, "[64, 64]")}, {tensor(5)},
                {tensor(0.3, "[64, 64]")}, {tensor(5)});
    return diagnosed(two, both_sides, optimizer_of({"Torch._foreach_norm.0.forward"}));
  };
  const RankDiagnosis rounded = norm_of_gradient("torch.bfloat16", 6e-3);
  CHECK(no_evidence(rounded));
  CHECK(rounded.findings.empty());
  CHECK(first(norm_of_gradient("torch.bfloat16", 0.1)).place == "input.0");
  CHECK(first(norm_of_gradient("torch.float32", 6e-3)).kind == Kind::unrecorded);
}

TEST_CASE("a running statistic that a call only writes matters after the step") {
  Two two;
  two.forward("Functional.batch_norm.0.forward", {tensor(1), rough(0.2, 0.3, "[64]"), tensor(0.9, "[64]")},
              {tensor(2)}, {tensor(1), tensor(0.2, "[64]"), tensor(0.9, "[64]")}, {tensor(2)});
  CHECK(first(diagnosed(two)).kind == Kind::parameter);
  two.forward("Functional.relu.0.forward", {tensor(2)}, {rough(3, 0.1)}, {tensor(2)}, {tensor(3)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Functional.relu.0.forward");
  CHECK(rank.findings[1].text.starts_with("input.1 is a running statistic"));
}

TEST_CASE("a call that takes single rows of a wrong parameter is not what is wrong") {
  // Statistics of the table hide most of it; another parameter shows it.
  const auto layers = [](const std::string& table, const std::string& weight, const std::string& rows) {
    Two two;
    two.forward("Functional.embedding.0.forward", {tensor(0.01), table}, {rows},
                {tensor(0.01), tensor(0.3, "[64, 64]")}, {tensor(2)});
    two.forward("Functional.linear.0.forward", {tensor(5), weight}, {tensor(6)},
                {tensor(5), tensor(0.7, "[64, 64]")}, {tensor(6)});
    return two;
  };
  const std::string table = tensor(0.3, "[64, 64]");
  const std::string weight = tensor(0.7, "[64, 64]");
  History history;
  REQUIRE(no_evidence(diagnosed(layers(table, weight, tensor(2)), history)));
  const RankDiagnosis rank =
      diagnosed(layers(rough(0.3, 1e-4, "[64, 64]"), rough(0.7, 0.4, "[64, 64]"), rough(2, 0.1)), history);
  CHECK(first(rank).rule == Rule::source);
  CHECK(testing::is_one_cause(rank));
}

TEST_CASE("an average of weights that has just begun is the weights") {
  // In this run the average equals the parameter bit by bit, in golden nearly.
  Two two;
  two.forward("Tensor.mul.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.forward("Tensor.add.0.forward", {tensor(3)}, {tensor(2)}, {tensor(3)}, {rough(2, 3e-7)});
  two.forward("Functional.linear.0.forward", {tensor(4), tensor(2)}, {tensor(5)}, {tensor(4), tensor(2)},
              {tensor(5)});
  CHECK(no_evidence(diagnosed(two)));
}

TEST_CASE("gradients that one run reduces after every pass, the other after the last") {
  const auto with = [](double taken) {
    Two two;
    const auto pass = [&](std::string_view call, const std::string& gradient, const std::string& golden) {
      two.backward("Module.a.Linear.backward." + std::string(call), {tensor(1)}, {tensor(2)}, {tensor(1)},
                   {tensor(2)});
      const std::string name = "Module.a.Linear.parameters_grad." + std::string(call);
      two.target.gradients(name, {named("w", "[" + gradient + "]")});
      two.golden.gradients(name, {named("w", "[" + golden + "]")});
    };
    pass("0", tensor(0.1), tensor(0.1));
    pass("1", rough(0.2, 0.5), tensor(0.2));
    const auto adam = [](double norm) {
      return R"({"optimizers": [{"module": "torch.optim.adam", "class": "Adam", "groups": [{"settings": {},
                 "gradient_norms": [)" +
             std::to_string(norm) + R"(], "parameters": ["a.w"]}]}], "tied_parameters": []})";
    };
    two.target.training = adam(taken);
    two.golden.training = adam(4);
    return diagnosed(two);
  };
  const RankDiagnosis rank = with(4);
  CHECK(no_evidence(rank));
  CHECK(says(rank, "both runs make the same result of"));
  CHECK(first(with(3)).is_evidence());
}

TEST_CASE("an optimizer that updates parts of parameters is not compared, and it is said") {
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), tensor(0.1, "[64, 64]")}, {tensor(2)},
              {tensor(1), tensor(0.1, "[64, 64]")}, {tensor(2)});
  std::string_view shape = "[32, 64]";
  SUBCASE("a half") {}
  SUBCASE("the whole") {
    shape = "[64, 64]";
  }
  for (int i = 0; i < 2; ++i) {
    const std::string entry = "Tensor.lerp_." + std::to_string(i) + ".forward";
    two.forward(entry, {tensor(0.2 + i, shape), tensor(0.5, shape)}, {tensor(0.3 + i, shape)},
                {tensor(0.4 + i, "[64, 64]"), tensor(0.9, "[64, 64]")}, {tensor(0.5 + i, "[64, 64]")});
  }
  two.target.forward("Tensor.mul_.0.forward", {tensor(7, "[32, 64]")}, {tensor(8, "[32, 64]")});
  const RankDiagnosis rank =
      diagnosed(two, both_sides,
                optimizer_of({"Tensor.lerp_.0.forward", "Tensor.lerp_.1.forward", "Tensor.mul_.0.forward"}));
  CHECK(no_evidence(rank) == (shape == "[32, 64]"));
  CHECK(says(rank, "the optimizer of this run updates parts of parameters") == (shape == "[32, 64]"));
}

TEST_CASE("another decay of an average of weights is named at its own call") {
  const auto averaged = [](const std::string& call, double kept) {
    const auto weight = [](double size) { return tensor(size, "[64, 64]"); };
    const auto number = [](double value) { return testing::scalar("float", python_repr(value)); };
    Two two;
    for (testing::DumpText* side : {&two.target, &two.golden}) {
      const double decay = side == &two.target ? kept : 0.9;
      const double average = 0.2 * decay + 0.096 * (1 - decay);
      side->forward("Functional.linear.0.forward", {tensor(1), weight(0.1)}, {tensor(2)});
      side->backward("Functional.linear.0.backward", {tensor(3)}, {tensor(4)});
      side->forward("Tensor.addcdiv_.0.forward", {weight(0.1), weight(0.35), weight(0.9)}, {weight(0.096)});
      if (call == "lerp_") {
        side->forward("Tensor.lerp_.0.forward", {weight(0.2), weight(0.096), number(1 - decay)},
                      {weight(average)});
      } else {
        side->forward("Tensor.mul_.0.forward", {weight(0.2), number(decay)}, {weight(0.2 * decay)});
        side->forward("Tensor.add_.0.forward", {weight(0.2 * decay), weight(0.096)}, {weight(average)},
                      {named("alpha", number(1 - decay))});
      }
    }
    return diagnosed(two, both_sides, optimizer_of({"Tensor.addcdiv_.0.forward"}));
  };
  for (const std::string call : {"mul_", "lerp_"}) {
    CAPTURE(call);
    CHECK(no_evidence(averaged(call, 0.9)));
    const RankDiagnosis rank = averaged(call, 0.99);
    CHECK(first(rank).kind == Kind::argument);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Tensor." + call + ".0.forward");
    CHECK(first(rank).module.empty());  // it is no call of the optimizer
    CHECK(first(rank).text.starts_with(call == "mul_" ? "argument input.1 is 0.99, golden 0.9; output error "
                                                      : "argument weight (input.2) is 0.01"));
    CHECK(testing::is_one_cause(rank));
  }
}

TEST_CASE("an average of weights that other calls change is named in its own step") {
  const auto averaged = [](double kept, double taken) {
    const auto weight = [](double size) { return tensor(size, "[64, 64]"); };
    const auto number = [](double value) { return testing::scalar("float", python_repr(value)); };
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1), weight(0.1)}, {tensor(2)},
                {tensor(1), weight(0.1)}, {tensor(2)});
    two.target.forward("Tensor.lerp_.0.forward", {weight(0.2), weight(taken), number(1 - kept)},
                       {weight(0.2 * kept + taken * (1 - kept))});
    two.golden.forward("Tensor.mul_.0.forward", {weight(0.2), number(0.9)}, {weight(0.18)});
    two.golden.forward("Tensor.add_.0.forward", {weight(0.18), weight(0.096)}, {weight(0.1896)},
                       {named("alpha", number(0.1))});
    return diagnosed(two);
  };
  CHECK(no_evidence(averaged(0.9, 0.096)));
  CHECK(no_evidence(averaged(0.9, 0.0961)));  // the weights have drifted a little
  for (const double taken : {0.096, 0.0961}) {
    CAPTURE(taken);
    const RankDiagnosis rank = averaged(0.1, taken);
    CHECK(first(rank).kind == Kind::exchanged);
    CHECK(first(rank).entry == "Tensor.lerp_.0.forward");
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(
        first(rank).text.starts_with("runs Tensor.lerp_ where golden runs Tensor.mul_, Tensor.add_; error "));
    CHECK(first(rank).text.ends_with(", where both change a tensor in place"));
  }
}

TEST_CASE("the square of a gradient that is nothing but noise is more noise") {
  const auto square = [](double size, double squared) {
    Two two;
    two.forward("Tensor.addcmul_.0.forward", {tensor(1e-12), tensor(size), tensor(size)}, {tensor(squared)},
                {tensor(1e-12), tensor(1e-9), tensor(1e-9)}, {tensor(2e-12)});
    return diagnosed(two, [](Asked& asked) { asked.options.without.insert(Rule::source); });
  };
  const auto introduced = [](const RankDiagnosis& rank) {
    return std::any_of(rank.findings.begin(), rank.findings.end(), [](const Finding& each) {
      return each.is_evidence() && each.rule == Rule::introduced;
    });
  };
  CHECK_FALSE(introduced(square(1e-7, 1e-8)));  // 100 times as large, its square 10,000 times
  CHECK(introduced(square(1.01e-9, 1e-8)));
}

TEST_CASE("an average that unrecorded code changes is no step of the optimizer") {
  // The optimizer has one of two models; the other follows it.
  const auto next_step = [](double error) {
    History history;
    const auto step = [&](double student, double teacher, double apart) {
      Two two;
      for (testing::DumpText* side : {&two.target, &two.golden}) {
        const double own = side == &two.target ? apart : 0;
        const std::string weight = tensor(student, "[64, 64]");
        const std::string average = rough(teacher, own, "[64, 64]");
        side->forward("Functional.linear.0.forward", {tensor(1), weight}, {tensor(2)});
        side->forward("Module.student.Linear.forward.0", {tensor(1)}, {tensor(2)}, {},
                      {named("weight", weight)});
        side->forward("Functional.linear.1.forward", {tensor(1), average}, {rough(20 * teacher, own)});
        side->forward("Module.teacher.Linear.forward.0", {tensor(1)}, {rough(20 * teacher, own)}, {},
                      {named("weight", average)});
        side->training = R"({"optimizers": [{"module": "torch.optim.adam", "class": "Adam", "groups": [)"
                         R"({"settings": {}, "parameters": ["student.weight"]}]}], "tied_parameters": []})";
      }
      return diagnosed(two, history);
    };
    REQUIRE(no_evidence(step(0.1, 0.2, 0)));
    return step(0.096, 0.19, error);
  };
  CHECK(no_evidence(next_step(0)));
  const RankDiagnosis rank = next_step(0.2);
  CHECK(first(rank).kind == Kind::parameter);
  CHECK(first(rank).entry == "Functional.linear.1.forward");
  CHECK(
      first(rank).text ==
      "input.1 (teacher.weight) differs by 2.0e-01 after the step, and no recorded optimizer updates it: it "
      "was changed outside of the optimizer, as a copy or an average is");
  CHECK(testing::is_one_cause(rank));
}

}  // namespace msprobe::diagnosis::inherited_errors_test
