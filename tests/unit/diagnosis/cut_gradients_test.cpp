// SPDX-License-Identifier: Apache-2.0
// Gradients that are cut off on one side, and masks of another size: the values of the forward agree.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::cut_gradients_test {
using testing::diagnosed;
using testing::first;
using testing::is_one_cause;
using testing::modules_of;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;

namespace {

constexpr std::string_view kTrained = R"(, "requires_grad": true)";
constexpr std::string_view kFixed = R"(, "requires_grad": false)";
const std::string kWeight = tensor(0.1, "[64, 64]");

std::string with_grad(double size, std::string_view shape, bool grad) {
  return tensor(size, shape, "torch.float32", grad ? kTrained : kFixed);
}

std::string zeros(std::string_view shape, std::string_view dtype = "torch.float32") {
  return tensor(0, shape, dtype);
}

std::string indices(std::string_view shape, double mean = 1.5) {
  return R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": )" + std::string(shape) +
         R"(, "Max": 3, "Min": 0, "Mean": )" + std::to_string(mean) + R"(, "Norm": 40})";
}

/// Ones and zeros, as many as the choices.
std::string mask(std::string_view shape, double norm) {
  return R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": )" + std::string(shape) +
         R"(, "Max": 1, "Min": 0, "Mean": 0.25, "Norm": )" + std::to_string(norm) + "}";
}

/// The load of the experts of a router, from all choices or from the first ones only.
Two loads(int choices, double before) {
  const std::string ours = "[128, " + std::to_string(choices) + "]";
  const std::string one_hot = "[128, " + std::to_string(choices) + ", 4]";
  const std::string part = "[" + std::to_string(choices) + ", 4]";
  const std::string probabilities = rough(0.3, before, "[128, 4]");
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {rough(2, before)}, {tensor(1), kWeight},
              {tensor(2)});
  two.forward("Torch.topk.0.forward", {probabilities, scalar("<class 'int'>", "2")},
              {rough(0.4, before, "[128, 2]"), indices("[128, 2]")},
              {tensor(0.3, "[128, 4]"), scalar("<class 'int'>", "2")},
              {tensor(0.4, "[128, 2]"), indices("[128, 2]")});
  two.forward("Functional.one_hot.0.forward",
              {indices(ours, choices == 2 ? 1.5 : 1.4), scalar("<class 'int'>", "4")},
              {mask(one_hot, choices == 2 ? 16 : 11.3)}, {indices("[128, 2]"), scalar("<class 'int'>", "4")},
              {mask("[128, 2, 4]", 16)});
  two.forward("Tensor.__mul__.0.forward", {tensor(0.5, part)}, {tensor(0.6, part)}, {tensor(0.5, "[2, 4]")},
              {tensor(0.6, "[2, 4]")});
  two.forward("Torch.sum.0.forward", {tensor(0.6, part)}, {tensor(choices * 0.5, "[]")},
              {tensor(0.6, "[2, 4]")}, {tensor(1, "[]")});
  return two;
}

/// A scale that is multiplied by; its gradient is cut off where `flows` is false, or zero.
Two scaled(bool flows, const std::string& norms) {
  Two two;
  const auto call = [](testing::DumpText& side, bool grad, const std::string& taken) {
    side.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {with_grad(2, "[4, 64]", true)});
    side.forward("Tensor.__mul__.0.forward", {with_grad(2, "[4, 64]", true), with_grad(0.7, "[]", grad)},
                 {with_grad(3, "[4, 64]", true)});
    testing::Texts given = {tensor(5)};
    if (grad) given.push_back(tensor(0.3, "[]"));
    side.backward("Tensor.__mul__.0.backward", {tensor(4)}, given);
    side.training =
        R"({"optimizers": [{"module": "torch.optim.sgd", "class": "SGD", "groups": [{"settings": {},
      "parameters": ["scale", "w"], "gradient_norms": )" +
        taken + R"(}]}], "tied_parameters": []})";
  };
  call(two.target, flows, norms);
  call(two.golden, true, "[0.3, 2.0]");
  return two;
}

/// The gradients of a layer's parameters, which follow from equal tensors.
Two parameters(const std::string& ours, const std::string& theirs, const std::string& dtype) {
  Two two;
  const auto same = [&](double size) { return tensor(size, "[4, 64]", dtype); };
  two.forward("Module.a.Linear.forward.0", {same(1)}, {same(2)}, {same(1)}, {same(2)});
  two.backward("Module.a.Linear.backward.0", {same(0.01)}, {same(0.02)}, {same(0.01)}, {same(0.02)});
  two.target.gradients("Module.a.Linear.parameters_grad.0", {"\"weight\": [" + ours + "]"});
  two.golden.gradients("Module.a.Linear.parameters_grad.0", {"\"weight\": [" + theirs + "]"});
  return two;
}

}  // namespace

TEST_CASE("a tensor that is cut off after a call without a backward") {
  // Dropout in evaluation returns its input, so that the softmax before it shows who sends gradients back.
  Two two;
  const auto step = [](testing::DumpText& side, bool flows) {
    side.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {with_grad(2, "[4, 64]", true)});
    side.forward("Functional.softmax.0.forward", {with_grad(2, "[4, 64]", true)},
                 {with_grad(0.5, "[4, 64]", true)});
    side.forward("Functional.dropout.0.forward", {with_grad(0.5, "[4, 64]", true)},
                 {with_grad(0.5, "[4, 64]", true)});
    side.forward("Torch.matmul.0.forward", {with_grad(0.5, "[4, 64]", flows), with_grad(2, "[4, 64]", true)},
                 {with_grad(3, "[4, 64]", true)});
    side.backward("Torch.matmul.0.backward", {tensor(4)},
                  flows ? testing::Texts{tensor(5), tensor(6)} : testing::Texts{"null", tensor(6)});
    if (flows) side.backward("Functional.softmax.0.backward", {tensor(5)}, {tensor(7)});
    side.backward("Functional.linear.0.backward", {tensor(flows ? 9 : 6)}, {tensor(flows ? 10 : 8)});
  };
  step(two.target, false);
  step(two.golden, true);
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::requires_grad);
  CHECK(first(rank).entry == "Torch.matmul.0.forward");
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(first(rank).text ==
        "requires_grad of input.0 is False, golden True; golden runs the backward of Functional.softmax.0, "
        "this "
        "run does not");
}

TEST_CASE("a parameter that one run does not train is named where it is used") {
  // All other gradients are the same.
  Two two;
  const auto step = [](testing::DumpText& side, bool trains) {
    side.forward("Functional.linear.0.forward", {tensor(1), with_grad(0.1, "[64, 64]", trains)},
                 {with_grad(2, "[4, 64]", trains)});
    side.forward("Functional.linear.1.forward",
                 {with_grad(2, "[4, 64]", trains), with_grad(0.2, "[64, 64]", true)},
                 {with_grad(3, "[4, 64]", true)});
    side.forward("Module.lora.Lora.forward.0", {tensor(1)}, {with_grad(3, "[4, 64]", true)});
    side.backward("Functional.linear.1.backward", {tensor(4)}, {trains ? tensor(5) : "null", tensor(6)});
    if (trains) side.backward("Functional.linear.0.backward", {tensor(5)}, {tensor(7)});
    testing::Texts gradients = {named("B", "[" + tensor(6, "[64, 64]") + "]")};
    if (trains) gradients.push_back(named("A", "[" + tensor(7, "[64, 64]") + "]"));
    side.gradients("Module.lora.Lora.parameters_grad.0", gradients);
  };
  step(two.target, false);
  step(two.golden, true);
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::requires_grad);
  CHECK(first(rank).entry == "Functional.linear.0.forward");
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(first(rank).text.starts_with("requires_grad of input.1 is False, golden True"));
}

TEST_CASE("a mask with fewer choices is named where its size first differs") {
  const RankDiagnosis rank = diagnosed(loads(1, 0));
  CHECK(first(rank).entry == "Functional.one_hot.0.forward");
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(first(rank).text.find("it has shape [128, 1], golden [128, 2]") != std::string::npos);
  CHECK(is_one_cause(rank));
  CHECK(no_evidence(diagnosed(loads(2, 0))));
}

TEST_CASE("without a recorded backward a gradient far below the others is noise") {
  const auto keys = [](double size, double error) {
    Two two;
    for (const std::string_view layer : {"query", "key"}) {
      const std::string name = "Module." + std::string(layer) + ".Linear.";
      two.forward(name + "forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
      const double gradient = layer == "key" ? size : 1;
      two.target.gradients(name + "parameters_grad.0",
                           {"\"bias\": [" + tensor(layer == "key" ? size * (1 + error) : 1, "[64]") + "]"});
      two.golden.gradients(name + "parameters_grad.0", {"\"bias\": [" + tensor(gradient, "[64]") + "]"});
    }
    return diagnosed(two);
  };
  CHECK(no_evidence(keys(1e-8, 0.7)));
  CHECK(first(keys(1e-2, 0.7)).entry == "Module.key.Linear.parameters_grad.0");
}

TEST_CASE("rounding before a decision may change how much it returns") {
  const auto selected = [](double before) {
    Two two;
    two.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {rough(2, before)}, {tensor(1), kWeight},
                {tensor(2)});
    two.forward("Torch.nonzero.0.forward", {rough(2, before)}, {indices("[31, 2]")}, {tensor(2)},
                {indices("[30, 2]")});
    two.forward("Torch.sum.0.forward", {tensor(5, "[31, 64]")}, {tensor(3, "[]")}, {tensor(5, "[30, 64]")},
                {tensor(2.5, "[]")});
    return diagnosed(two);
  };
  CHECK(no_evidence(selected(1e-7)));
  CHECK(first(selected(0)).entry == "Torch.nonzero.0.forward");
}

TEST_CASE("a module that hands on another gradient path does not hand on the same") {
  const auto routed = [](bool cut) {
    Two two;
    const auto side = [](testing::DumpText& one, bool grad) {
      one.forward("Tensor.topk.0.forward", {with_grad(1, "[4, 64]", true)}, {with_grad(2, "[4, 64]", true)});
      one.forward("Tensor.sum.0.forward", {with_grad(2, "[4, 64]", grad)}, {with_grad(3, "[4, 64]", grad)});
      one.forward("Module.router.Router.forward.0", {with_grad(1, "[4, 64]", true)},
                  {with_grad(3, "[4, 64]", grad), with_grad(9, "[]", true)});
      if (grad) one.backward("Tensor.sum.0.backward", {tensor(5)}, {tensor(6)});
      one.backward("Module.router.Router.backward.0", {grad ? tensor(5) : tensor(0.1, "[]")},
                   {tensor(grad ? 7 : 0.2)});
      one.gradients("Module.router.Router.parameters_grad.0",
                    {"\"weight\": [" + tensor(grad ? 8 : 0.5, "[64, 64]") + "]"});
    };
    side(two.target, !cut);
    side(two.golden, true);
    return diagnosed(two, {},
                     modules_of({{"Tensor.topk.0.forward", "Module.router.Router.forward.0"},
                                 {"Tensor.sum.0.forward", "Module.router.Router.forward.0"},
                                 {"Module.router.Router.forward.0", ""},
                                 {"Module.router.Router.backward.0", ""}}));
  };
  const RankDiagnosis rank = routed(true);
  CHECK(first(rank).kind == Kind::requires_grad);
  CHECK(first(rank).entry == "Tensor.sum.0.forward");
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(no_evidence(routed(false)));
}

TEST_CASE("a gradient that the optimizer does not get leads to the call that cuts it off") {
  const RankDiagnosis rank = diagnosed(scaled(false, "[null, 2.0]"));
  CHECK(first(rank).entry == "Tensor.__mul__.0.forward");
  CHECK(first(rank).kind == Kind::requires_grad);
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).text.find("the optimizer of this run gets no gradient of scale") != std::string::npos);
  const Finding zero = first(diagnosed(scaled(true, "[0.0, 2.0]")));
  CHECK(zero.kind == Kind::optimizer);
  CHECK(zero.text ==
        "the optimizer of this run gets a gradient of zeros for scale, that of golden one of norm 3.0e-01");
  CHECK(no_evidence(diagnosed(scaled(true, "[0.3, 2.0]"))));
}

TEST_CASE("an exact zero is no rounding of a gradient that cancels") {
  const std::string shape = "[64, 64]";
  // Its terms have a norm of 0.16 x 16 / 8.
  const std::string small = tensor(1e-6, shape);
  const std::string rounding = tensor(1e-8, shape);
  const RankDiagnosis rank = diagnosed(parameters(zeros(shape), small, "torch.float32"));
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(first(rank).text.find("is exactly 0, golden has the norm 1.6e-05") != std::string::npos);
  const RankDiagnosis reverse = diagnosed(parameters(small, zeros(shape), "torch.float32"));
  CHECK(first(reverse).is_evidence());
  CHECK(first(reverse).text.find("has the norm 1.6e-05, golden is exactly 0") != std::string::npos);
  CHECK(no_evidence(diagnosed(parameters(zeros(shape), rounding, "torch.float32"))));
  CHECK(no_evidence(diagnosed(parameters(rounding, zeros(shape), "torch.float32"))));
  CHECK(no_evidence(diagnosed(parameters(rough(1e-6, 1e-7, shape), small, "torch.float32"))));
}

TEST_CASE("float16 makes zeros of what is too small for it") {
  const std::string shape = "[64, 64]";
  const auto with = [&](double size) {
    return diagnosed(parameters(zeros(shape), tensor(size, shape), "torch.float16"));
  };
  CHECK(first(with(1e-5)).is_evidence());
  const RankDiagnosis lost = with(1e-9);
  CHECK(no_evidence(lost));
}

}  // namespace msprobe::diagnosis::cut_gradients_test
