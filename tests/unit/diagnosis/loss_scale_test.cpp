// SPDX-License-Identifier: Apache-2.0
// Two runs that scale the loss by other factors.
#include "diagnosis/loss_scale.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::loss_scale_test {
using testing::Chain;
using testing::diagnosed;
using testing::first;
using testing::is_one_cause;
using testing::no_evidence;
using testing::tensor;
using testing::Texts;
using testing::Two;

std::string number(double value) {
  return tensor(value, "[]");
}

std::string scaler(double scale, bool skipped = false) {
  return R"({"loss_scale": {"scale": )" + std::to_string(scale) + R"(, "skipped": )" +
         (skipped ? "true" : "false") + R"(}, "optimizers": [], "tied_parameters": []})";
}

struct Changes {
  double ours = 1024;
  double theirs = 65536;
  double wrong = 1;      // what the gradient of the first layer is multiplied by besides
  double residue = 1;    // what is left of the factor in what the optimizer takes
  bool clips = false;    // the gradients are divided by their norm
  bool by_hand = false;  // recorded operations compute a gradient
};

/// A loss, its product with the scale, and the gradients of three layers, which an operation divides again.
Two training(const Changes& changes = {}) {
  Two two = Chain().text();
  two.forward("Functional.mse_loss.0.forward", {tensor(4), tensor(5)}, {number(0.5)}, {tensor(4), tensor(5)},
              {number(0.5)});
  const auto product = [&](double scale) {
    return std::pair(Texts{number(0.5), number(scale)}, Texts{number(0.5 * scale)});
  };
  const auto [our_inputs, our_outputs] = product(changes.ours);
  const auto [their_inputs, their_outputs] = product(changes.theirs);
  two.forward("Tensor.__mul__.0.forward", our_inputs, our_outputs, their_inputs, their_outputs);
  two.backward("Tensor.__mul__.0.backward", {number(1)}, {number(changes.ours)}, {number(1)},
               {number(changes.theirs)});
  two.backward("Functional.mse_loss.0.backward", {number(changes.ours)}, {tensor((1) * changes.ours)},
               {number(changes.theirs)}, {tensor((1) * changes.theirs)});
  if (changes.by_hand)
    two.forward("Tensor.__mul__.1.forward", {tensor(changes.ours), tensor(0.5)},
                {tensor(0.4 * changes.ours * changes.wrong)}, {tensor(changes.theirs), tensor(0.5)},
                {tensor(0.4 * changes.theirs)});
  for (int i = 2; i >= 0; --i) {
    const double wrong = i == 0 ? changes.wrong : 1;
    two.backward("Functional.linear." + std::to_string(i) + ".backward", {tensor((3 - i) * changes.ours)},
                 {tensor((4 - i) * changes.ours * wrong)}, {tensor((3 - i) * changes.theirs)},
                 {tensor((4 - i) * changes.theirs)});
  }
  if (changes.clips)
    two.forward("Torch.norm.0.forward", {tensor(4 * changes.ours)}, {number(4 * changes.ours)},
                {tensor(4 * changes.theirs)}, {number(4 * changes.theirs)});
  for (int i = 0; i < 3; ++i) {
    const double wrong = i == 2 ? changes.wrong : 1;
    two.forward("Tensor.mul_." + std::to_string(i) + ".forward",
                {tensor((2 + i) * changes.ours * wrong), number(1 / changes.ours)},
                {tensor((2 + i) * changes.residue * wrong)},
                {tensor((2 + i) * changes.theirs), number(1 / changes.theirs)}, {tensor(2 + i)});
  }
  return two;
}

RankDiagnosis with(const std::string& target, const std::string& golden, Two two) {
  two.target.training = target;
  two.golden.training = golden;
  return diagnosed(two);
}

bool is_said(const RankDiagnosis& rank) {
  return std::any_of(rank.notes.begin(), rank.notes.end(),
                     [](const std::string& note) { return note.find("taken out") != std::string::npos; });
}

TEST_CASE("another scale of the loss is a note, but not evidence") {
  SUBCASE("as the scalers say") {
    const RankDiagnosis rank = with(scaler(1024), scaler(65536), training());
    CHECK(no_evidence(rank));
    CHECK(is_said(rank));
  }
  SUBCASE("as it shows in gradients that are divided again") {
    const RankDiagnosis rank = diagnosed(training());
    CHECK(no_evidence(rank));
    CHECK(is_said(rank));
  }
  SUBCASE("one run alone has a scaler") {
    CHECK(no_evidence(with(scaler(1024), "{}", training({.ours = 1024, .theirs = 1}))));
  }
  SUBCASE("operations within the backward of a function carry it") {
    CHECK(no_evidence(with(scaler(128), "{}", training({.ours = 128, .theirs = 1, .by_hand = true}))));
    const RankDiagnosis rank =
        with(scaler(128), "{}", training({.ours = 128, .theirs = 1, .wrong = 1.5, .by_hand = true}));
    CHECK(first(rank).entry == "Tensor.__mul__.1.forward");
  }
  SUBCASE("the same scale") {
    CHECK_FALSE(is_said(with(scaler(64), scaler(64), training({.ours = 64, .theirs = 64}))));
  }
}

TEST_CASE("a factor that is not taken out is evidence") {
  const RankDiagnosis rank = diagnosed(training({.residue = 1.0 / 64}));
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).entry == "Tensor.mul_.0.forward");
}

TEST_CASE("a factor that clipping takes away is evidence") {
  // As a loss that is not divided by the number of its micro batches.
  const RankDiagnosis rank = diagnosed(training({.ours = 4, .theirs = 1, .clips = true}));
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).entry == "Tensor.__mul__.0.forward");
  CHECK_FALSE(is_said(rank));
  CHECK(no_evidence(diagnosed(training({.clips = true}))));
}

TEST_CASE("a loss that is weighed otherwise is no scale") {
  // Nobody scales by a half.
  const RankDiagnosis rank = diagnosed(training({.ours = 0.5, .theirs = 1, .residue = 0.5}));
  CHECK(first(rank).is_evidence());
  CHECK_FALSE(is_said(rank));
}

TEST_CASE("a fault beside another scale is found where it is") {
  const RankDiagnosis rank = with(scaler(1024), scaler(65536), training({.wrong = 2}));
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).entry == "Functional.linear.0.backward");
}

TEST_CASE("a step that one run skips") {
  Two two = training();
  const std::string infinite =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8, 64], "Max": "Infinity", "Min": -1.0, "Mean": "Infinity", "Norm": "Infinity"})";
  two.backward("Functional.linear.3.backward", {infinite}, {infinite}, {tensor(1)}, {tensor(2)});
  const RankDiagnosis rank = with(scaler(1024, true), scaler(65536), two);
  CHECK(first(rank).kind == Kind::optimizer);
  CHECK(first(rank).text ==
        "gradients of the loss scaled by 1024 overflow, and this step is skipped; golden, which scales by "
        "65536, makes it");
  CHECK(is_one_cause(rank));
}

}  // namespace msprobe::diagnosis::loss_scale_test
