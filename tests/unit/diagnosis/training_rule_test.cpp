// SPDX-License-Identifier: Apache-2.0
// Optimizers, tied parameters and buffers, as a dump has them beside its calls.
#include "diagnosis/training_rule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "diagnosis/conclusion.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::training_rule_test {
using testing::Chain;
using testing::diagnosed;
using testing::first;
using testing::is_one_cause;
using testing::modules_of;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::tensor;
using testing::Texts;
using testing::Two;

/// One group for w and b.
std::string adam(const std::string& settings, const std::string& more = R"("steps": [3])",
                 const std::string& name = "Adam") {
  return R"({"optimizers": [{"module": "torch.optim.adam", "class": ")" + name +
         R"(", "groups": [{"settings": {)" + settings + "}, " + more +
         R"(, "parameters": ["a.w", "a.b"]}]}], "tied_parameters": []})";
}

RankDiagnosis with(const std::string& target, const std::string& golden, Two two = Chain().text()) {
  two.target.training = target;
  two.golden.training = golden;
  return diagnosed(two);
}

TEST_CASE("settings of an optimizer") {
  const std::string golden = adam(R"("lr": 0.00066, "betas": [0.9, 0.999], "foreach": true)");
  SUBCASE("equal, but for how it computes and the last digits") {
    CHECK(no_evidence(
        with(adam(R"("lr": 0.0006600000000001, "betas": [0.9, 0.999], "foreach": null)"), golden)));
  }
  SUBCASE("a learning rate") {
    const Finding found = first(with(adam(R"("lr": 0.00075, "betas": [0.9, 0.999])"), golden));
    CHECK(found.kind == Kind::optimizer);
    CHECK(found.confidence == Confidence::certain);
    CHECK(found.text == "Adam: lr is 0.00075, golden 0.00066 (all 2 parameters)");
  }
  SUBCASE("steps that were counted") {
    const Finding found =
        first(with(adam(R"("lr": 0.00066, "betas": [0.9, 0.999])", R"("steps": [4])"), golden));
    CHECK(found.text == "Adam: the count of steps is [4], golden [3] (all 2 parameters)");
  }
  SUBCASE("another optimizer") {
    const Finding found =
        first(with(adam(R"("lr": 0.00066, "betas": [0.9, 0.999])", R"("steps": [3])", "AdamW"), golden));
    CHECK(found.text == "the optimizer is AdamW, golden Adam");
    CHECK(found.confidence == Confidence::certain);
  }
  SUBCASE("one of another library") {
    // It may do the same.
    const std::string own =
        R"({"optimizers": [{"class": "FusedAdam", "module": "apex.optimizers", "groups": []}]})";
    const RankDiagnosis rank = with(own, golden);
    CHECK(no_evidence(rank));
    CHECK(first(rank).text == "the optimizer is FusedAdam, golden Adam");
  }
  SUBCASE("names of groups") {
    CHECK(no_evidence(
        with(adam(R"("lr": 0.00066, "name": "norms")"), adam(R"("lr": 0.00066, "name": "rest")"))));
  }
  SUBCASE("of one parameter alone") {
    const std::string groups =
        R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {"lr": 0.00066}, "parameters": ["a.w"]},
        {"settings": {"lr": 0.1}, "parameters": ["a.b"]}]}]})";
    CHECK(first(with(groups, golden)).text == "Adam: lr is 0.1, golden 0.00066 (1 of 2 parameters: a.b)");
  }
  SUBCASE("a parameter that one side does not update") {
    const std::string fewer =
        R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": ["a.w"]}]}],
        "tied_parameters": [["a.b", "c.b"]]})";
    CHECK(no_evidence(with(fewer, golden)));  // it is another name of one that is updated
    const std::string alone =
        R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": ["a.w"]}]}]})";
    Two known = Chain().text();
    for (auto* side : {&known.target, &known.golden})
      side->forward("Module.a.Linear.forward.0", {tensor(1)}, {tensor(1)}, {}, {named("b", tensor(1))});
    CHECK(first(with(alone, golden, known)).text == "golden's Adam updates a.b, this run's does not");
  }
  SUBCASE("unnamed parameters") {
    const auto unnamed = [](const std::string& rate) {
      return R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {"lr": )" + rate +
             R"(}, "parameters": [null, null]}]}]})";
    };
    CHECK(first(with(unnamed("0.1"), unnamed("0.2"))).text == "Adam: lr is 0.1, golden 0.2 (all 1 groups)");
  }
  SUBCASE("not recorded") {
    CHECK(no_evidence(with("{}", golden)));
  }
}

TEST_CASE("a call that golden's optimizer alone makes follows from a setting") {
  Two two = Chain().text();
  two.backward("Module.a.Linear.backward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.golden.forward("Tensor.mul_.0.forward", {tensor(5, "[64, 64]")}, {tensor(4.5, "[64, 64]")});
  two.forward("Tensor.addcdiv_.0.forward", {tensor(5, "[64, 64]"), tensor(2, "[64, 64]")},
              {tensor(6, "[64, 64]")}, {tensor(4.5, "[64, 64]"), tensor(2, "[64, 64]")},
              {tensor(5.5, "[64, 64]")});
  two.target.training = adam(R"("weight_decay": 0)");
  two.golden.training = adam(R"("weight_decay": 0.1)");
  const auto modules =
      modules_of({{"Tensor.mul_.0.forward", "optimizer"}, {"Tensor.addcdiv_.0.forward", "optimizer"}});
  const auto both = [&](testing::Asked& asked) { asked.rank.golden_construct = modules; };
  const RankDiagnosis rank = diagnosed(two, both, modules);
  CHECK(conclude({rank}).culprit().entry == "optimizer");
  CHECK(conclude({rank}).independent == 1);
  CHECK(std::any_of(rank.findings.begin(), rank.findings.end(), [](const Finding& each) {
    return each.kind == Kind::removed && each.entry == "Tensor.mul_.0.forward" && each.downstream;
  }));
}

TEST_CASE("optimizers that step in another order are partners by their parameters") {
  const auto step = [](const char* name, const char* lr, const char* parameter) {
    return R"({"module": "torch.optim", "class": ")" + std::string(name) +
           R"(", "groups": [{"settings": {"lr": )" + lr + R"(}, "parameters": [")" + parameter + "\"]}]}";
  };
  const auto both = [](const std::string& one, const std::string& other) {
    return R"({"optimizers": [)" + one + ", " + other + R"(], "tied_parameters": []})";
  };
  const std::string dense = step("AdamW", "0.1", "a.w");
  const std::string golden = both(dense, step("Adagrad", "0.2", "a.b"));
  CHECK(no_evidence(with(both(step("Adagrad", "0.2", "a.b"), dense), golden)));
  const RankDiagnosis rank = with(both(step("Adagrad", "0.3", "a.b"), dense), golden);
  CHECK(first(rank).text == "Adagrad: lr is 0.3, golden 0.2 (all 1 parameters)");
  CHECK(rank.evidence == 1);
  // One of two steps is made by the other optimizer.
  const std::string both_dense = both(dense, step("AdamW", "0.1", "a.b"));
  Two known = Chain().text();
  for (auto* side : {&known.target, &known.golden})
    side->forward("Module.a.Linear.forward.0", {tensor(1)}, {tensor(1)}, {}, {named("b", tensor(1))});
  CHECK(first(with(both(dense, dense), both_dense, known)).text ==
        "AdamW updates a.w, where golden's updates a.b");
  // Without a common parameter they are compared as they come.
  CHECK(first(with(both(dense, step("SGD", "0.2", "c.b")), golden)).text ==
        "the optimizer is SGD, golden Adagrad");
}

TEST_CASE("an optimizer for each part is the one for the whole") {
  const auto adams = [](const std::string& first, const std::string& more, const std::string& second = "") {
    const auto step = [](const std::string& lr, const std::string& parameters) {
      return R"({"module": "torch.optim.adam", "class": "Adam", "groups": [{"settings": {"lr": )" + lr +
             R"(}, "parameters": [)" + parameters + "]}]}";
    };
    return R"({"optimizers": [)" + step(first, more) +
           (second.empty() ? "" : ", " + step(second, R"("a.b")")) +
           R"(, {"class": "SGD", "groups": [{"settings": {"lr": 1}, "parameters": ["c.w"]}]}]})";
  };
  const std::string whole = adams("0.1", R"("a.w", "a.b")");
  CHECK(no_evidence(with(adams("0.1", R"("a.w")", "0.1"), whole)));
  CHECK(no_evidence(with(whole, adams("0.1", R"("a.w")", "0.1"))));
  const RankDiagnosis rank = with(adams("0.1", R"("a.w")", "0.3"), whole);
  CHECK(first(rank).text == "Adam: lr is 0.3, golden 0.1 (1 of 2 parameters: a.b)");
  CHECK(rank.evidence == 1);
}

TEST_CASE("optimizers of one side alone, in whatever number") {
  const auto adams = [](const std::vector<const char*>& parameters) {
    std::string steps;
    for (const char* const each : parameters)
      steps += std::string(steps.empty() ? "" : ", ") +
               R"({"class": "Adam", "groups": [{"settings": {"lr": 1}, "parameters": [")" + each + R"("]}]})";
    return R"({"optimizers": [)" + steps + "]}";
  };
  const std::string one = adams({"a.w"});
  const std::string four = adams({"b.w", "a.w", "c.w", "b.w"});
  CHECK(first(with(one, four)).text == "1 optimizer step in this step, 4 in golden");
  CHECK(first(with(four, one)).text == "4 optimizer steps in this step, 1 in golden");
}

TEST_CASE("AdamW without decay is Adam") {
  const auto named = [](const char* name, const char* decay) {
    return adam(std::string(R"("lr": 0.1, "weight_decay": )") + decay, R"("steps": [3])", name);
  };
  CHECK(no_evidence(with(named("AdamW", "0.0"), named("Adam", "0"))));
  CHECK(first(with(named("AdamW", "0.1"), named("Adam", "0.1"))).text ==
        "the optimizer is AdamW, golden Adam");
}

TEST_CASE("a parameter that no recorded module has is missing in an optimizer") {
  const auto sgd = [](const std::string& parameters, const std::string& norms) {
    return R"({"optimizers": [{"class": "SGD", "groups": [{"settings": {"lr": 1}, "parameters": [)" +
           parameters + R"(], "gradient_norms": [)" + norms + "]}]}]}";
  };
  const std::string all = sgd(R"("a.w", "query.weight")", "1, 2");
  CHECK(first(with(sgd(R"("a.w")", "1"), all)).text ==
        "golden's SGD updates query.weight, this run's does not");
  CHECK(first(with(all, sgd(R"("a.w")", "1"))).text == "SGD updates query.weight, golden's does not");
  // A parameter without a gradient trains nothing, and one of another name may be the same.
  CHECK(no_evidence(with(sgd(R"("a.w")", "1"), sgd(R"("a.w", "unused.weight")", "1, null"))));
  CHECK(no_evidence(with(sgd(R"("a.w", "q.weight")", "1, 2"), all)));
}

TEST_CASE("a setting that is a tensor is what rounding to float32 makes of it") {
  CHECK(no_evidence(with(adam(R"("lr": 0.0010000000474974513)"), adam(R"("lr": 0.001)"))));
  CHECK(first(with(adam(R"("lr": 0.0010000000474974513)"), adam(R"("lr": 0.0010001)"))).is_evidence());
}

TEST_CASE("an optimizer that calls another says its settings once, and leads where no module is recorded") {
  const auto settings = [](const char* lr) {
    const std::string group = R"({"settings": {"lr": )" + std::string(lr) + "}, \"parameters\": ";
    return R"({"optimizers": [{"class": "ZeroRedundancyOptimizer", "groups": [)" + group +
           R"(["a.w", "a.b"]}]}, {"module": "torch.optim.adam", "class": "AdamW", "groups": [)" + group +
           R"(["a.w"]}]}], "tied_parameters": []})";
  };
  Two two = Chain().text();
  two.backward("Functional.linear.0.backward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.forward("Tensor.mul_.0.forward", {tensor(1), testing::scalar("float", "0.99")}, {rough(1, 0.01)},
              {tensor(1), testing::scalar("float", "0.98")}, {tensor(1)});
  const RankDiagnosis rank = with(settings("0.0007500000065192580"), settings("0.00066"), two);
  CHECK(first(rank).entry == "optimizer");
  CHECK(first(rank).text == "ZeroRedundancyOptimizer: lr is 0.00075, golden 0.00066 (all 2 parameters)");
  CHECK(is_one_cause(rank));
}

TEST_CASE("parameters that are one") {
  const std::string tied = R"({"tied_parameters": [["e.weight", "h.weight"]]})";
  const std::string apart =
      R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": ["e.weight", "h.weight"]}]}],
      "tied_parameters": []})";
  CHECK(first(with(apart, tied)).text == "e.weight, h.weight are one parameter in golden, 2 in this run");
  CHECK(first(with(tied, apart)).text == "e.weight, h.weight are one parameter in this run, 2 in golden");
  CHECK(no_evidence(with(tied, tied)));
  const std::string three = R"({"tied_parameters": [["e.weight", "f.weight", "h.weight"]]})";
  const std::string two =
      R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": ["e.weight", "h.weight"]}]}],
      "tied_parameters": [["e.weight", "f.weight"]]})";
  CHECK(first(with(two, three)).text ==
        "e.weight, f.weight, h.weight are one parameter in golden, 2 in this run");
  CHECK(no_evidence(with(R"({"tied_parameters": []})", tied)));  // a side that has no h.weight
  CHECK(no_evidence(with("{}", tied)));
}

TEST_CASE("a parameter that is another's on one side follows from that") {
  Two two;
  const std::string weight = tensor(0.1, "[64, 64]");
  const std::string own = tensor(0.7, "[64, 64]");
  two.target.forward("Module.h.Linear.forward.0", {tensor(1)}, {tensor(2)}, {}, {named("weight", own)});
  two.golden.forward("Module.h.Linear.forward.0", {tensor(1)}, {tensor(3)}, {}, {named("weight", weight)});
  const std::string tied = R"({"tied_parameters": [["e.weight", "h.weight"]]})";
  const std::string apart =
      R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": ["e.weight", "h.weight"]}]}],
      "tied_parameters": []})";
  const RankDiagnosis rank = with(apart, tied, two);
  CHECK(first(rank).text == "e.weight, h.weight are one parameter in golden, 2 in this run");
  CHECK(is_one_cause(rank));
}

TEST_CASE("gradients that change between backward and optimizer") {
  const auto taken = [](const std::string& norm) {
    return adam("", R"("gradient_norms": [)" + norm + ", 16]");
  };
  Two two;
  two.target.gradients("Module.a.Linear.parameters_grad.0", {named("w", "[" + tensor(0.5) + "]")});
  two.golden.gradients("Module.a.Linear.parameters_grad.0", {named("w", "[" + tensor(0.5) + "]")});
  CHECK(no_evidence(with(taken("8.0001"), taken("8"), two)));
  CHECK(no_evidence(with(taken("4"), taken("4"), two)));  // both clip
  const Finding found = first(with(taken("4"), taken("8"), two));
  CHECK(found.text ==
        "between backward and optimizer: the optimizer takes 1 gradient 0.5 times as large, in golden as the "
        "backward gave them: a.w");
}

TEST_CASE("clipping to one norm makes other factors of other gradients") {
  const auto said = [](double limit) {
    Two two;
    two.target.gradients("Module.a.Linear.parameters_grad.0",
                         {named("w", "[" + tensor(3) + "]"), named("b", "[" + tensor(4) + "]")});
    two.golden.gradients("Module.a.Linear.parameters_grad.0",
                         {named("w", "[" + tensor(3) + "]"), named("b", "[" + tensor(2) + "]")});
    const auto clipped = [](double w, double b, double to) {
      const double factor = to / std::hypot(w, b);
      return adam("",
                  R"("gradient_norms": [)" + python_repr(w * factor) + ", " + python_repr(b * factor) + "]");
    };
    const RankDiagnosis rank = with(clipped(48, 64, 1), clipped(48, 32, limit), two);
    return std::ranges::any_of(rank.findings, [](const Finding& each) {
      return each.is_evidence() && each.text.find("the optimizer takes") != std::string::npos;
    });
  };
  CHECK(!said(1));
  CHECK(said(2));
}

TEST_CASE("another argument of a call that clips gradients comes before what the optimizer takes") {
  const auto taken = [](const std::string& norm) {
    return adam("", R"("gradient_norms": [)" + norm + ", 16]");
  };
  const std::string gradient = tensor(0.5, "[64, 64]");
  Two two = Chain().text();
  two.backward("Functional.linear.0.backward", {tensor(1)}, {}, {tensor(1)}, {});
  for (testing::DumpText* side : {&two.target, &two.golden})
    side->gradients("Module.a.Linear.parameters_grad.0", {named("w", "[" + gradient + "]")});
  const auto clip = [](const char* limit) { return Texts{tensor(3, "[]"), testing::scalar("float", limit)}; };
  SUBCASE("an argument") {
    two.forward("Tensor.__mul__.0.forward", clip("0.5"), {tensor(1.5, "[]")}, clip("1.0"), {tensor(3, "[]")});
  }
  SUBCASE("a call of golden alone") {
    two.golden.forward("Tensor.__mul__.0.forward", clip("1.0"), {tensor(3, "[]")});
  }
  two.forward("Tensor.lerp_.0.forward", {tensor(0.1, "[64, 64]"), tensor(0.25, "[64, 64]")},
              {tensor(0.2, "[64, 64]")}, {tensor(0.1, "[64, 64]"), gradient}, {tensor(0.4, "[64, 64]")});
  two.target.training = taken("4");
  two.golden.training = taken("8");
  const auto modules =
      modules_of({{"Tensor.__mul__.0.forward", "clip_grad"}, {"Tensor.lerp_.0.forward", "optimizer"}});
  const RankDiagnosis rank = diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  CHECK(first(rank).entry == "Tensor.__mul__.0.forward");
  CHECK(first(rank).is_evidence());
  CHECK(is_one_cause(rank));
}

TEST_CASE("a shorter list of norms does not show two layouts") {
  Two two = Chain().text();
  two.forward("Torch.vector_norm.0.forward", {tensor(1, "[2]")}, {tensor(1, "[]")}, {tensor(1, "[3]")},
              {tensor(1, "[]")});
  const auto modules = modules_of({{"Torch.vector_norm.0.forward", "clip_grad"}});
  const RankDiagnosis rank = diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  CHECK(std::none_of(rank.notes.begin(), rank.notes.end(), [](const std::string& note) {
    return note.find("parallel layouts") != std::string::npos;
  }));
}

TEST_CASE("gradients that reach the optimizer as the same, on another way") {
  std::string taken = "8";
  SUBCASE("all of them") {}
  SUBCASE("not all of them") {
    taken = "8.1";
  }
  Two two = Chain().text();
  const std::string gradient = tensor(0.5, "[64, 64]");
  two.backward("Functional.linear.0.backward", {tensor(1)}, {}, {tensor(1)}, {});
  for (testing::DumpText* side : {&two.target, &two.golden})
    side->gradients("Module.a.Linear.parameters_grad.0", {named("w", "[" + gradient + "]")});
  // This run joins gradients into one tensor, by code that is not recorded.
  two.forward("Distributed.all_reduce.0.forward", {tensor(0.7)}, {tensor(0.9)}, {tensor(0.3)}, {tensor(0.4)});
  two.forward("Tensor.add_.0.forward", {tensor(1)}, {tensor(1)}, {tensor(1)}, {tensor(1)});
  two.target.training = adam("", R"("gradient_norms": [)" + taken + ", 16]");
  two.golden.training = adam("", R"("gradient_norms": [8, 16])");
  const auto calls = modules_of({{"Tensor.add_.0.forward", "optimizer"}});
  const RankDiagnosis rank = diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = calls; }, calls);
  const bool calls_are_evidence =
      std::any_of(rank.findings.begin(), rank.findings.end(),
                  [](const Finding& each) { return each.is_evidence() && each.entry != "optimizer"; });
  CHECK(calls_are_evidence == (taken != "8"));
  CHECK(no_evidence(rank) == (taken == "8"));
}

TEST_CASE("clipping that one run alone makes is said") {
  const auto taken = [](double factor) {
    std::string norms;
    for (int i = 0; i < 3; ++i) norms += (i > 0 ? ", " : "") + python_repr(16.0 * (i + 1) * factor);
    return R"({"optimizers": [{"module": "torch.optim.sgd", "class": "SGD", "groups": [{"settings": {}, )"
           R"("gradient_norms": [)" +
           norms + R"(], "parameters": ["a.w", "a.b", "a.c"]}]}]})";
  };
  const auto backward = [](bool clips_in_golden) {
    Two two;
    two.backward("Module.a.Linear.backward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    for (testing::DumpText* side : {&two.target, &two.golden})
      side->gradients("Module.a.Linear.parameters_grad.0",
                      {named("w", "[" + tensor(1) + "]"), named("b", "[" + tensor(2) + "]"),
                       named("c", "[" + tensor(3) + "]")});
    if (clips_in_golden) two.golden.forward("Torch._foreach_norm.0.forward", {tensor(1)}, {tensor(16, "[]")});
    return two;
  };
  const auto said = [&](double ours, double theirs, bool recorded = false) {
    Two two = backward(recorded);
    two.target.training = taken(ours);
    two.golden.training = taken(theirs);
    const auto clips = modules_of({{"Torch._foreach_norm.0.forward", "clip_grad"}});
    return diagnosed(two, [&](testing::Asked& asked) { asked.rank.golden_construct = clips; });
  };
  SUBCASE("by the factor") {
    CHECK(
        first(said(1, 0.25))
            .text.starts_with(
                "golden makes gradients smaller by one factor, as clipping by norm or a division does, this "
                "run does not: "
                "the optimizer takes 3 gradients as the backward gave them, in golden 0.25 times as large"));
    CHECK(first(said(0.25, 1)).text.starts_with("this run makes gradients smaller by one factor"));
  }
  SUBCASE("by its calls, which follow from it") {
    const RankDiagnosis rank = said(1, 0.25, true);
    CHECK(first(rank).text.starts_with("golden clips gradients, this run does not: the optimizer takes 3"));
    CHECK(is_one_cause(rank));
  }
  SUBCASE("larger gradients are not clipped") {
    CHECK(first(said(1, 4)).text.starts_with("between backward and optimizer: "));
    CHECK(first(said(0.5, 0.25)).text.starts_with("between backward and optimizer: "));
  }
}

TEST_CASE("a description that says something else") {
  const auto read = [](std::string_view json) {
    testing::DumpText text;
    text.training = json;
    return text.side().header.training;
  };
  CHECK(read(R"({"optimizers": 3, "tied_parameters": {"a": 1}, "more": null})").optimizers.empty());
  CHECK(
      read(R"({"optimizers": [1, {"groups": [2, {"settings": [], "parameters": {}}]}]})").optimizers.size() ==
      2);
  CHECK(!read("[3]").tied);
  CHECK(!read("null").tied);
}

TEST_CASE("a gradient that one run changes for an optimizer that is not recorded") {
  Two two = Chain().text();
  two.backward("Module.a.Linear.backward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  for (testing::DumpText* side : {&two.target, &two.golden})
    side->gradients("Module.a.Linear.parameters_grad.0", {"\"w\": [" + tensor(3, "[64, 64]") + "]"});
  std::string given = tensor(1.5, "[64, 64]");
  SUBCASE("changed") {}
  SUBCASE("handed on as it is") {
    given = tensor(3, "[64, 64]");
  }
  two.target.forward("Tensor.mul_.0.forward", {tensor(3, "[64, 64]"), testing::scalar("float", "0.5")},
                     {given});
  const RankDiagnosis rank = diagnosed(two);
  if (given == tensor(3, "[64, 64]")) {
    CHECK(no_evidence(rank));
    return;
  }
  CHECK(first(rank).entry == "Tensor.mul_.0.forward");
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(first(rank).text ==
        "this run changes the gradient of a.w between backward and optimizer, golden does not");
  // Golden clips by calls that are not recorded; this is known where the optimizer says what it takes.
  const auto taken = [](const std::string& norm) {
    return adam("", R"("gradient_norms": [)" + norm + ", 16]");
  };
  CHECK(no_evidence(with(taken("24"), taken("24"), two)));
  CHECK(first(with(taken("24"), taken("48"), two)).is_evidence());
  const RankDiagnosis in_optimizer = diagnosed(two, {}, modules_of({{"Tensor.mul_.0.forward", "optimizer"}}));
  CHECK(no_evidence(in_optimizer));
}

/// A module with an entry within, and a buffer.
Two module_with(const std::string& buffer, const std::string& taken, double out) {
  Two two;
  two.target.forward("Torch.outer.0.forward", {taken}, {tensor(out)});
  two.golden.forward("Torch.outer.0.forward", {tensor(1)}, {tensor(2)});
  two.target.add("Module.rope.Rope.forward.0", R"({"input_args": [], "input_kwargs": {}, "output": [)" +
                                                   tensor(out) + R"(], "buffers": {"table": )" + buffer +
                                                   "}}");
  two.golden.add("Module.rope.Rope.forward.0", R"({"input_args": [], "input_kwargs": {}, "output": [)" +
                                                   tensor(2) + R"(], "buffers": {"table": )" + tensor(1) +
                                                   "}}");
  return two;
}

TEST_CASE("a buffer that differs before it is used") {
  const auto modules = modules_of({{"Torch.outer.0.forward", "Module.rope.Rope.forward.0"}});
  const RankDiagnosis rank = diagnosed(module_with(tensor(1.5), tensor(1.5), 3), {}, modules);
  CHECK(first(rank).text == "buffer rope.table differs by 5.0e-01 before it is used");
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(is_one_cause(rank));
  CHECK(no_evidence(diagnosed(module_with(tensor(1), tensor(1), 2), {}, modules)));
  // A buffer that no call takes, and whose module is right, is a hint.
  const RankDiagnosis unused = diagnosed(module_with(tensor(1.5), tensor(1), 2), {}, modules);
  CHECK(no_evidence(unused));
  CHECK(first(unused).text == "buffer rope.table differs by 5.0e-01 before it is used; no recorded effect");
  // A part of it was taken: the module shows it.
  const RankDiagnosis part = diagnosed(module_with(tensor(1.5), tensor(1), 3), {}, modules);
  CHECK(first(part).text == "buffer rope.table differs by 5.0e-01 before it is used");
  CHECK(is_one_cause(part));
  // A buffer of another size is judged by the calls that use it.
  const std::string half_as_wide = tensor(1, "[4, 32]");
  const RankDiagnosis other = diagnosed(module_with(half_as_wide, half_as_wide, 2), {}, modules);
  CHECK(no_evidence(other));
  CHECK(std::any_of(other.findings.begin(), other.findings.end(), [](const Finding& each) {
    return each.text == "buffer rope.table has another size before it is used; no recorded effect";
  }));
  // It gives no rows.
  CHECK(module_with(tensor(1), tensor(1), 2).target.side().items.size() == 3);
  CHECK(module_with(tensor(1), tensor(1), 2).target.side().buffers.size() == 1);
}

TEST_CASE("a buffer that differs after other evidence follows from it") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1)}, {rough(2, 0.3)}, {tensor(1)}, {tensor(2)});
  const Two used = module_with(tensor(1.5), tensor(1.5), 3);
  const auto modules = modules_of({{"Torch.outer.0.forward", "Module.rope.Rope.forward.0"}});
  two.target.append(used.target).header = used.target.header;
  two.golden.append(used.golden).header = used.golden.header;
  const RankDiagnosis rank = diagnosed(two, {}, modules);
  CHECK(first(rank).entry == "Functional.relu.0.forward");
  CHECK(is_one_cause(rank));
}

TEST_CASE("what one run does to gradients in every pass, and the other once") {
  Two two = Chain().text();
  const std::string gradient = tensor(3, "[64, 64]");
  const auto clip = [&](testing::DumpText& side, int call) {
    side.forward("Tensor.mul_." + std::to_string(call) + ".forward",
                 {gradient, testing::scalar("float", "0.5")}, {tensor(1.5, "[64, 64]")});
  };
  for (int pass = 0; pass < 2; ++pass) {
    const std::string call = std::to_string(pass);
    two.backward("Module.a.Linear.backward." + call, {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    for (testing::DumpText* side : {&two.target, &two.golden})
      side->gradients("Module.a.Linear.parameters_grad." + call, {"\"w\": [" + gradient + "]"});
    if (pass == 0) clip(two.target, 0);
  }
  clip(two.target, 1);
  clip(two.golden, 0);
  const Finding found = first(diagnosed(two));
  CHECK(found.entry == "Tensor.mul_.1.forward");
  CHECK(found.text.ends_with("; Tensor.mul_ is called 2 times in this step, in golden once"));
}

TEST_CASE("a setting of an optimizer whose updates are not recorded") {
  Two two = Chain().text();
  const auto step = [](testing::DumpText& side, std::string_view rate) {
    side.forward("Torch._fused_adamw_.0.forward", {tensor(0.7, "[64, 64]")}, {},
                 {named("lr", testing::scalar("float", rate))});
  };
  step(two.target, "0.002");
  step(two.golden, "0.001");
  const Finding found =
      first(diagnosed(two, {}, modules_of({{"Torch._fused_adamw_.0.forward", "optimizer"}})));
  CHECK(found.kind == Kind::argument);
  CHECK(found.confidence == Confidence::likely);
  CHECK(found.text == "argument lr is 0.002, golden 0.001; what it computes is not recorded");
}

/// Two micro-batches of which each adds to the gradient. `change`: what a call makes of the sum; `in_each`:
/// whether this run makes it in every pass, golden after the last.
RankDiagnosis micro_batches(const std::string& call, bool in_each, double (*change)(double)) {
  const auto gradient = [](double size) { return tensor(size, "[64, 64]"); };
  Two two;
  for (testing::DumpText* side : {&two.target, &two.golden}) {
    double sum = 0;
    int calls = 0;
    for (int pass = 0; pass < 2; ++pass) {
      const std::string number = std::to_string(pass);
      side->forward("Functional.linear." + number + ".forward", {tensor(1 + pass), gradient(0.1)},
                    {tensor(3 + pass)});
      side->forward("Module.a.Linear.forward." + number, {tensor(1 + pass)}, {tensor(3 + pass)}, {},
                    {named("w", gradient(0.1))});
      side->backward("Module.a.Linear.backward." + number, {tensor(1 + pass)}, {tensor(2 + pass)});
      sum += 0.9 + 0.1 * pass;
      side->gradients("Module.a.Linear.parameters_grad." + number, {named("w", "[" + gradient(sum) + "]")});
      if (pass == 0 && (side == &two.golden || !in_each)) continue;
      side->forward(call + "." + std::to_string(calls++) + ".forward", {gradient(sum)},
                    {gradient(change(sum))});
      sum = change(sum);
    }
    side->training = adam("", R"("gradient_norms": [)" + python_repr(16 * sum) + ", 16]");
  }
  return diagnosed(two);
}

TEST_CASE("what one run does to gradients in every micro-batch is counted") {
  SUBCASE("a division") {
    const auto halve = [](double sum) { return sum / 2; };
    CHECK(no_evidence(micro_batches("Tensor.div_", false, halve)));
    const RankDiagnosis rank = micro_batches("Tensor.div_", true, halve);
    CHECK(first(rank).kind == Kind::added);
    CHECK(first(rank).entry == "Tensor.div_.0.forward");
    CHECK(first(rank).text ==
          "this run changes the gradient of a.w between backward and optimizer, golden does not; Tensor.div_ "
          "is "
          "called 2 times in this step, in golden once");
  }
  SUBCASE("a reduction over ranks") {
    const auto reduce = [](double sum) { return 1.3 * sum + 0.2; };
    CHECK(no_evidence(micro_batches("Distributed.all_reduce", false, reduce)));
    const RankDiagnosis rank = micro_batches("Distributed.all_reduce", true, reduce);
    CHECK(first(rank).kind == Kind::added);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Distributed.all_reduce.0.forward");
    CHECK(first(rank).text.starts_with("runs Distributed.all_reduce, golden does not; error "));
    CHECK(first(rank).text.ends_with(
        "; Distributed.all_reduce is called 2 times in this step, in golden once"));
    CHECK(is_one_cause(rank));
  }
}

TEST_CASE("a call that one side's optimizer alone makes is the cause where settings are equal") {
  const auto modules = modules_of({{"Tensor.lerp_.0.forward", "optimizer"},
                                   {"Tensor.mul_.0.forward", "optimizer"},
                                   {"Tensor.addcdiv_.0.forward", "optimizer"}});
  const auto stepped = [&](bool ours, const char* factor, double decayed) {
    const auto weight = [](double size) { return tensor(size, "[64, 64]"); };
    Two two = Chain().text();
    two.backward("Module.a.Linear.backward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
    for (testing::DumpText* side : {&two.target, &two.golden}) {
      const bool decays = (side == &two.target) == ours;
      const double size = decays ? decayed : 0.5;
      side->forward("Tensor.lerp_.0.forward", {weight(0.3), weight(0.8)}, {weight(0.35)});
      if (decays)
        side->forward("Tensor.mul_.0.forward", {weight(0.5), testing::scalar("float", factor)},
                      {weight(size)});
      side->forward("Tensor.addcdiv_.0.forward", {weight(size), weight(0.35), weight(0.9)},
                    {weight(size - 0.004)});
      side->training = adam(R"("lr": 0.001, "weight_decay": 0)");
    }
    return diagnosed(
        two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  };
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    CHECK(no_evidence(stepped(ours, "1.0", 0.5)));
    const RankDiagnosis rank = stepped(ours, "0.9", 0.45);
    CHECK(first(rank).kind == (ours ? Kind::added : Kind::removed));
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Tensor.mul_.0.forward");
    CHECK(first(rank).module == "optimizer");
    CHECK(first(rank).text.starts_with(ours ? "runs Tensor.mul_, golden does not; error "
                                            : "golden runs Tensor.mul_ here, this run does not; error "));
    CHECK(first(rank).text.ends_with(" at Tensor.addcdiv_.0.forward, 0 before"));
    CHECK(is_one_cause(rank));
  }
}

}  // namespace msprobe::diagnosis::training_rule_test
