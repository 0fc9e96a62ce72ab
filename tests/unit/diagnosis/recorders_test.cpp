// SPDX-License-Identifier: Apache-2.0
// Recorders that work otherwise make no two runs differ.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnosis/other_code.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::recorders_test {
namespace {

using dump::Side;
using testing::Chain;
using testing::Configure;
using testing::diagnosed;
using testing::first;
using testing::kNoise;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;

std::string with_sums(std::string_view dtype, std::string_view shape, double largest, double least,
                      double mean, double norm) {
  return fmt::format(
      R"({{"type": "torch.Tensor", "dtype": "{}", "shape": {}, "Max": {}, "Min": {}, "Mean": {}, )"
      R"("Norm": {}, "requires_grad": false}})",
      dtype, shape, largest, least, mean, norm);
}

/// The tolerance for a norm of the last input of both.
double norm_tolerance(const Two& two) {
  const Side target = two.target.side();
  const Side golden = two.golden.side();
  const measuring::StatisticsPrecision precision(target, golden,
                                                 pairing::align(target, golden).golden_item_of);
  const auto last = [](const Side& side) -> const dump::Item& {
    const dump::Api& api = side.apis.back();
    return side.items[api.first + api.count - 1];
  };
  return precision.of(target, last(target), golden, last(golden)).norm;
}

}  // namespace

TEST_CASE("settings of the framework that differ are a note, but not a fault") {
  Two two = Chain().text();
  two.target.training = R"({"torch_flags": {"torch.a": true, "torch.b": 4, "torch.c": "x", "torch.mine": 1,
                                            "torch.odd": [1]}})";
  two.golden.training = R"({"torch_flags": {"torch.a": false, "torch.b": 4, "torch.c": "y", "torch.theirs": 1,
                                            "torch.odd": [2]}})";
  RankDiagnosis rank = diagnosed(two);
  REQUIRE(rank.notes.size() == 1);
  CHECK(rank.notes[0] == "torch.a is True, False in golden; torch.c is x, y in golden");
  CHECK(no_evidence(rank));
  two.golden.training = two.target.training;
  CHECK(diagnosed(two).notes.empty());
  // Nothing is known about older recorders.
  for (const char* const none : {"", R"({"torch_flags": 1})", R"({"torch_flags": {}})"}) {
    two.golden.training = none;
    CHECK(diagnosed(two).notes.empty());
  }
}

TEST_CASE("one recorder that records such operations on both sides is not said to leave them out") {
  Two two = Chain().text();
  two.forward("Tensor.view.0.forward", {tensor(1)}, {tensor(1)}, {tensor(1)}, {tensor(1)});
  two.target.forward("Tensor.to.0.forward", {tensor(1)}, {tensor(1)});
  const auto is_said = [](const RankDiagnosis& rank) {
    return std::ranges::any_of(rank.notes, [](const std::string& note) {
      return note.find("recorder does not record such operations") != std::string::npos;
    });
  };
  CHECK(is_said(diagnosed(two)));
  two.target.recorder = "msprobe 0.2.0";
  CHECK(is_said(diagnosed(two)));
  two.golden.recorder = "msprobe 0.2.0";
  CHECK_FALSE(is_said(diagnosed(two)));
}

TEST_CASE("what a recording was not asked for is not missing") {
  // Every call has a number, whether it is recorded or not: this run has those of one layer.
  const auto recorded = [](std::string_view dim, double error) {
    Two two;
    for (int i = 0; i < 6; ++i) {
      const std::string call = std::to_string(i);
      const double size = 1 + i;
      const std::string weight = tensor(0.1 * size, "[64, 64]");
      const double in = i > 1 ? error : 0;
      if (i == 1 || i == 5)
        two.target.forward("Functional.linear." + call + ".forward", {rough(2 * size, in), weight},
                           {rough(2 * size + 1, in)});
      two.golden.forward("Functional.linear." + call + ".forward", {tensor(2 * size), weight},
                         {tensor(2 * size + 1)});
    }
    two.forward("Tensor.softmax.5.forward", {rough(13, error), scalar("int", dim)}, {rough(14, error)},
                {tensor(13), scalar("int", "-1")}, {tensor(14)});
    return diagnosed(two, {},
                     testing::modules_of({{"Functional.linear.0.forward", "Module.0.L.forward.0"},
                                          {"Functional.linear.1.forward", "Module.1.L.forward.0"},
                                          {"Functional.linear.2.forward", "Module.2.L.forward.0"},
                                          {"Functional.linear.3.forward", "Module.3.L.forward.0"},
                                          {"Functional.linear.4.forward", "Module.4.L.forward.0"},
                                          {"Functional.linear.5.forward", "Module.5.L.forward.0"}}));
  };
  CHECK(no_evidence(recorded("-1", 0)));
  const RankDiagnosis rank = recorded("-2", 0.4);
  CHECK(first(rank).entry == "Tensor.softmax.5.forward");
  CHECK(first(rank).kind == Kind::argument);
  CHECK(std::ranges::any_of(rank.notes, [](const std::string& note) {
    return note.find("the other recording was asked for some calls alone") != std::string::npos;
  }));
}

/// Four layers of ten calls of golden; this run has those of softmax alone, and calls them with `dim`.
Two softmax_alone(std::string_view header, std::string_view dim, double error,
                  std::string_view name = "Tensor.softmax.") {
  Two two;
  two.target.header = header;
  for (int i = 0; i < 40; ++i) {
    const double size = 1 + i;
    if (i % 10 != 5) {
      two.golden.forward(fmt::format("Functional.linear.{}.forward", i - (i + 4) / 10), {tensor(size)},
                         {tensor(size + 1)});
      continue;
    }
    const double in = i > 5 ? error : 0;
    two.target.forward(fmt::format("{}{}.forward", name, i / 10), {rough(size, in), scalar("int", dim)},
                       {rough(size + 1, error)});
    two.golden.forward(fmt::format("Tensor.softmax.{}.forward", i / 10), {tensor(size), scalar("int", "-1")},
                       {tensor(size + 1)});
  }
  return two;
}

bool is_other_code(const Two& two) {
  measuring::MeasuredRank rank;
  rank.target = two.target.side();
  rank.golden = two.golden.side();
  rank.alignment =
      std::make_shared<const pairing::Alignment>(pairing::align(rank.target, rank.golden, nullptr, nullptr));
  return are_two_code_bases(rank);
}

TEST_CASE("calls that a list did not ask for make no other code") {
  const auto says = [](const RankDiagnosis& rank, std::string_view why) {
    return std::ranges::any_of(rank.notes, [&](const std::string& note) {
      return note.find(
                 fmt::format("36 calls are recorded in golden only: the other recording was asked for some "
                             "calls alone ({})",
                             why)) != std::string::npos;
    });
  };
  for (const std::string header : {R"("list": ["softmax"], )", ""}) {
    CAPTURE(header);
    CHECK_FALSE(is_other_code(softmax_alone(header, "-1", 0)));
    const RankDiagnosis right = diagnosed(softmax_alone(header, "-1", 0));
    CHECK(right.findings.empty());
    CHECK(says(right,
               header.empty() ? "most likely: it has few calls, all of them in both" : "its list says so"));
    const RankDiagnosis wrong = diagnosed(softmax_alone(header, "-2", 0.4));
    CHECK(first(wrong).kind == Kind::argument);
    CHECK(first(wrong).entry == "Tensor.softmax.0.forward");
  }
  // A code that calls something else is another one.
  CHECK(is_other_code(softmax_alone("", "-1", 0, "Tensor.log_softmax.")));
  // A call that the list names was asked for.
  Two two = softmax_alone(R"("list": ["softmax"], )", "-1", 0);
  two.golden.forward("Tensor.softmax.4.forward", {tensor(50)}, {tensor(51)});
  two.golden.forward("Tensor.softmax.5.forward", {tensor(51)}, {tensor(52)});
  two.forward("Tensor.softmax.6.forward", {rough(52, 0.3)}, {rough(53, 0.3)}, {tensor(52)}, {tensor(53)});
  CHECK(first(diagnosed(two)).kind == Kind::removed);
}

TEST_CASE("calls that a list did not ask for round as others do") {
  const auto taken = [](std::string_view list, double error) {
    Two two;
    two.target.header = list;
    for (int i = 0; i < 8; ++i) {
      const double size = 1 + 3 * i;
      const double own = i > 0 ? error : 0;
      if (list.empty())
        two.target.forward(fmt::format("Functional.gelu.{}.forward", i), {rough(size, own)},
                           {tensor(size + 1)});
      two.golden.forward(fmt::format("Functional.gelu.{}.forward", i), {tensor(size)}, {tensor(size + 1)});
      two.forward(fmt::format("Tensor.softmax.{}.forward", i), {rough(size + 1, own)}, {rough(size + 2, own)},
                  {tensor(size + 1)}, {tensor(size + 2)});
    }
    return diagnosed(two);
  };
  constexpr std::string_view kList = R"("list": ["softmax"], )";
  CHECK(no_evidence(taken(kList, 5e-7)));
  CHECK(!no_evidence(taken("", 5e-6)));  // one call of each pair is known to have no such error
  const RankDiagnosis rank = taken(kList, 1e-2);
  CHECK(first(rank).entry == "Tensor.softmax.1.forward");
  CHECK(
      first(rank).text ==
      "input.0 comes from unrecorded code, in golden from Functional.gelu.1.forward; it differs by 1.0e-02");
  CHECK(testing::is_one_cause(rank));
}

TEST_CASE("a recomputation that runs one block twice and another never is noted") {
  const auto blocks = [](const std::vector<std::pair<int, int>>& calls, testing::DumpText& side) {
    for (const auto& [block, call] : calls) {
      side.forward(fmt::format("Module.b{}.act.Act.forward.{}", block, call), {tensor(1 + block)},
                   {tensor(2 + block)});
      side.forward(fmt::format("Module.b{}.Block.forward.{}", block, call), {tensor(1 + block)},
                   {tensor(2 + block)});
    }
  };
  Two two;
  blocks({{0, 0}, {1, 0}, {0, 1}, {0, 2}}, two.target);
  blocks({{0, 0}, {1, 0}, {1, 1}, {0, 1}}, two.golden);
  CHECK(std::ranges::any_of(diagnosed(two).notes, [](const std::string& note) {
    return note ==
           "some modules run more often than in golden and others less often in this step: Module.b0.Block "
           "3, 2 in golden; "
           "Module.b1.Block 1, 2 in golden";
  }));
}

void knows_modules_of_both(testing::Asked& asked) {
  asked.rank.golden_construct = asked.rank.target_construct;
}

/// Three layers in a block, of which `compiled` code has no operations in the target. `error`: of the second.
RankDiagnosis compiled_layers(bool compiled, double error) {
  Two two;
  for (int i = 0; i < 3; ++i) {
    const std::string call = fmt::format("Functional.linear.{}.forward", i);
    const std::string module = fmt::format("Module.block.f{}.Linear.forward.0", i);
    const testing::Texts inputs = {rough(1 + i, i == 2 ? error : 0), tensor(0.1, "[64, 64]")};
    const testing::Texts outputs = {rough(2 + i, i > 0 ? error : 0)};
    if (!compiled) two.target.forward(call, inputs, outputs);
    two.target.forward(module, {inputs[0]}, outputs);
    two.golden.forward(call, {tensor(1 + i), inputs[1]}, {tensor(2 + i)});
    two.golden.forward(module, {tensor(1 + i)}, {tensor(2 + i)});
  }
  two.forward("Module.block.Block.forward.0", {tensor(1)}, {rough(4, error)}, {tensor(1)}, {tensor(4)});
  two.forward("Torch.exp.0.forward", {rough(4, error)}, {rough(5, error)}, {tensor(4)}, {tensor(5)});
  return diagnosed(two, knows_modules_of_both,
                   testing::modules_of({{"Functional.linear.0.forward", "Module.block.f0.Linear.forward.0"},
                                        {"Functional.linear.1.forward", "Module.block.f1.Linear.forward.0"},
                                        {"Functional.linear.2.forward", "Module.block.f2.Linear.forward.0"},
                                        {"Module.block.f0.Linear.forward.0", "Module.block.Block.forward.0"},
                                        {"Module.block.f1.Linear.forward.0", "Module.block.Block.forward.0"},
                                        {"Module.block.f2.Linear.forward.0", "Module.block.Block.forward.0"},
                                        {"Module.block.Block.forward.0", ""}}));
}

TEST_CASE("the modules of compiled code are compared as a whole") {
  CHECK(compiled_layers(true, 0).findings.empty());
  const RankDiagnosis rank = compiled_layers(true, 0.2);
  CHECK(first(rank).entry == "Module.block.f1.Linear.forward.0");
  CHECK(first(rank).is_evidence());
  CHECK(std::ranges::any_of(rank.notes, [](const std::string& note) {
    return note.starts_with("3 operations are recorded in golden only: the other run records no operations");
  }));
  CHECK(first(compiled_layers(false, 0.2)).entry == "Functional.linear.1.forward");
}

TEST_CASE("nothing is known of the errors inside modules that golden has compiled") {
  Two two;
  const std::string weight = tensor(0.1, "[64, 64]");
  const auto kernel = [](double size) { return rough(size, 3e-6); };  // another one, fused
  for (int i = 0; i < 2; ++i) {
    const std::string module = fmt::format("Module.block.f{}.Linear.forward.0", i);
    two.target.forward(fmt::format("Functional.linear.{}.forward", i), {kernel(1 + 2 * i), weight},
                       {kernel(2 + 2 * i)});
    two.forward(module, {kernel(1 + 2 * i)}, {kernel(2 + 2 * i)}, {tensor(1 + 2 * i)}, {tensor(2 + 2 * i)});
    two.target.forward(fmt::format("Torch.relu.{}.forward", i), {kernel(2 + 2 * i)}, {kernel(3 + 2 * i)});
  }
  two.forward("Module.block.Block.forward.0", {tensor(1)}, {kernel(5)}, {tensor(1)}, {tensor(5)});
  two.forward("Torch.exp.0.forward", {kernel(5)}, {kernel(6)}, {tensor(5)}, {tensor(6)});
  const RankDiagnosis rank =
      diagnosed(two, knows_modules_of_both,
                testing::modules_of({{"Functional.linear.0.forward", "Module.block.f0.Linear.forward.0"},
                                     {"Functional.linear.1.forward", "Module.block.f1.Linear.forward.0"},
                                     {"Torch.relu.0.forward", "Module.block.Block.forward.0"},
                                     {"Torch.relu.1.forward", "Module.block.Block.forward.0"},
                                     {"Module.block.f0.Linear.forward.0", "Module.block.Block.forward.0"},
                                     {"Module.block.f1.Linear.forward.0", "Module.block.Block.forward.0"},
                                     {"Module.block.Block.forward.0", ""}}));
  CHECK(std::ranges::none_of(rank.findings, [](const Finding& found) {
    return found.text.find(", in golden from ") != std::string::npos;
  }));
}

TEST_CASE("a recording that ends in the middle of a step is no other code") {
  Two two = Chain().text();
  for (int i = 3; i < 6; ++i) {
    const std::string name = "Functional.linear." + std::to_string(i) + ".forward";
    two.golden.forward(name, {tensor(1 + i)}, {tensor(2 + i)});
  }
  for (const bool exchanged : {false, true}) {
    CAPTURE(exchanged);
    if (exchanged) std::swap(two.target, two.golden);
    const RankDiagnosis rank = diagnosed(two);
    CHECK(no_evidence(rank));
    CHECK(first(rank).text.starts_with(exchanged ? "golden ends here" : "this run ends here"));
    CHECK(first(rank).text.ends_with(" 3 more entries"));
    CHECK(first(rank).side.empty());
  }
  SUBCASE(
      "while modules and gradients go on, as in the Python tool behind a recomputation that was stopped "
      "early") {
    std::swap(two.target, two.golden);
    two.forward("Module.fc.Linear.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    two.backward("Functional.linear.2.backward", {tensor(6)}, {tensor(7)}, {tensor(6)}, {tensor(7)});
    CHECK(first(diagnosed(two)).text.starts_with("this run records no more"));
    CHECK(first(diagnosed(two)).text.ends_with(" 3 more entries"));
  }
  SUBCASE("but not where an operation follows on both sides") {
    std::swap(two.target, two.golden);
    two.forward("Functional.gelu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    CHECK(first(diagnosed(two)).text ==
          "golden records Functional.linear, Functional.linear, Functional.linear here, this run does not; "
          "no recorded effect");
  }
}

TEST_CASE("a recording that ends in the middle of a step is no other code base, however much more there is") {
  Two two = Chain().text();
  for (int i = 0; i < 200; ++i)
    two.golden.forward("Tensor.addcmul_." + std::to_string(i) + ".forward", {tensor(1 + i)}, {tensor(2 + i)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(no_evidence(rank));
  CHECK(first(rank).text.starts_with("this run ends here"));
  CHECK(
      std::ranges::none_of(rank.notes, [](const std::string& note) { return note.starts_with("two code"); }));
}

TEST_CASE("sums that are said to be in double are compared with those of constants") {
  // Statistics of integers in double, as float32 does not have them.
  const std::string tokens = with_sums("torch.int64", "[3]", 9, 1, 10.0 / 3, 9.110433579144299);
  const auto call = [&](double norm) {
    Two two;
    const std::string same = with_sums("torch.float32", "[64]", 1.5, 1.5, 1.5, norm);
    two.forward("Tensor.mul.0.forward", {tokens, same}, {tensor(1)}, {tokens, same}, {tensor(1)});
    return norm_tolerance(two);
  };
  CHECK(call(12) == 0);
  CHECK(call(12 * (1 + 1e-6)) > 4e-7);
}

TEST_CASE("sums that are off for one type are for another, of which there is too little to learn from") {
  const auto off_by = [](double error) {
    Two two;
    for (int i = 0; i < 6; ++i) {
      const auto weight = [&](double more) {
        return with_sums("torch.bfloat16", "[64, 64]", 1, -1, 0, 30.123457 * (1 + i) * (1 + more));
      };
      two.forward(fmt::format("Functional.linear.{}.forward", i), {tensor(1 + i), weight(error)}, {},
                  {tensor(1 + i), weight(0)}, {});
    }
    two.forward("Torch.exp.0.forward", {tensor(9, "[64, 64]")}, {}, {tensor(9, "[64, 64]")}, {});
    return norm_tolerance(two);
  };
  CHECK(off_by(2e-6) > 7.9e-6);
  CHECK(off_by(2e-6) < 8.1e-6);
  CHECK(off_by(0) < 4e-6);  // of sums in float32
}

TEST_CASE("gradients of parameters at the place of the forward are judged after the backward") {
  const auto two = [](double error) {
    Two text = Chain().text();
    text.target.gradients("Module.fc.Linear.parameters_grad", {named("weight", "[" + rough(5, error) + "]")});
    text.golden.gradients("Module.fc.Linear.parameters_grad", {named("weight", "[" + tensor(5) + "]")});
    text.backward("Functional.linear.2.backward", {rough(6, error)}, {rough(7, error)}, {tensor(6)},
                  {tensor(7)});
    text.backward("Module.fc.Linear.backward.0", {rough(6, error)}, {rough(7, error)}, {tensor(6)},
                  {tensor(7)});
    return text;
  };
  const RankDiagnosis rank = diagnosed(two(1e-2));
  CHECK(first(rank).entry == "Functional.linear.2.backward");
  CHECK(no_evidence(diagnosed(two(kNoise))));
}

TEST_CASE("where one side has modules alone, modules are compared as a whole") {
  const std::string module = "Module.norm.RMS.forward.0";
  Two two;
  two.forward("Module.fc.Linear.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.target.forward("Tensor.__add__.0.forward", {tensor(2), scalar("float", "0.001")}, {tensor(2.5)});
  two.forward(module, {tensor(2)}, {rough(3, 1e-3)}, {tensor(2)}, {tensor(3)});
  const auto construct = testing::modules_of({{"Tensor.__add__.0.forward", module}});
  for (const bool exchanged : {false, true}) {
    CAPTURE(exchanged);
    if (exchanged) std::swap(two.target, two.golden);
    const RankDiagnosis rank = diagnosed(two, Configure(), construct);
    CHECK(rank.evidence == 1);
    CHECK(first(rank).entry == module);
    CHECK(first(rank).kind == Kind::introduced);
    REQUIRE(rank.notes.size() == 1);
    CHECK(rank.notes[0].find(exchanged ? "in golden only" : "in this run only") != std::string::npos);
    CHECK(rank.notes[0].find("different levels") != std::string::npos);
  }
}

TEST_CASE("a gradient that says to be of other uses, too, is compared with none that does not") {
  const auto two = [](bool said, bool by_both) {
    const auto of_all = [](double size) {
      return tensor(size, "[4, 64]", "torch.float32", R"(, "gradient_of": "all uses")");
    };
    const std::string name = "Module.drop.Dropout.";
    Two text;
    text.forward(name + "forward.0", {tensor(1)}, {tensor(1)}, {tensor(1)}, {tensor(1)});
    text.backward(name + "backward.0", {said ? of_all(3) : tensor(3)}, {said ? of_all(3) : tensor(3)},
                  {by_both ? of_all(2) : tensor(2)}, {by_both ? of_all(2) : tensor(2)});
    return text;
  };
  const RankDiagnosis rank = diagnosed(two(true, false));
  CHECK(no_evidence(rank));
  REQUIRE(rank.notes.size() == 1);
  CHECK(rank.notes[0].find("2 gradients are with other uses") != std::string::npos);
  CHECK(no_evidence(diagnosed(two(false, true))));
  CHECK(!no_evidence(diagnosed(two(false, false))));
  CHECK(!no_evidence(diagnosed(two(true, true))));
}

TEST_CASE("the gradient of an activation in place may be recorded before it") {
  const auto two = [](std::string_view operation) {
    const std::string name = "Functional." + std::string(operation) + ".0.";
    Two text;
    text.forward(name + "forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    text.backward(name + "backward", {tensor(3)}, {tensor(2)}, {tensor(3)}, {tensor(3)});
    text.backward("Functional.linear.0.backward", {tensor(2)}, {tensor(5)}, {tensor(2)}, {tensor(5)});
    return text;
  };
  const RankDiagnosis rank = diagnosed(two("relu_"));
  CHECK(no_evidence(rank));
  REQUIRE(rank.notes.size() == 1);
  CHECK(rank.notes[0].find("gradient of in-place activations") != std::string::npos);
  CHECK_FALSE(no_evidence(diagnosed(two("softmax"))));
}

}  // namespace msprobe::diagnosis::recorders_test
