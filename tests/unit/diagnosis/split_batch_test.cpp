// SPDX-License-Identifier: Apache-2.0
// The same rows in another number of parts: micro-batches, minibatches, two calls for one.
#include "diagnosis/split_batch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::split_batch_test {
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::is_one_cause;
using testing::modules_of;
using testing::no_evidence;
using testing::scalar;
using testing::tensor;
using testing::Two;

const std::string weight = tensor(0.1, "[64, 64]");

bool is_noted(const RankDiagnosis& rank, std::string_view text) {
  return std::any_of(rank.notes.begin(), rank.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::string rows_of(int rows) {
  return "[" + std::to_string(rows) + ", 64]";
}

struct Rates {
  double whole = 2;     // the model's output for the whole batch
  double weight = 0.3;  // what is computed from it ahead of the parts
  double gradient = 0.5;
};

/// Scores of the whole batch, then the loss of each part, then the norm of the gradient and a step.
DumpText training(int parts, const Rates& rates) {
  DumpText side;
  const int rows = 8 / parts;
  const auto call = [&](int number, int of, double out) {
    const std::string n = std::to_string(number);
    side.forward("Functional.linear." + n + ".forward", {tensor(1 + number, rows_of(of)), weight},
                 {tensor(out, rows_of(of))});
    side.forward("Module.m.Linear.forward." + n, {tensor(1 + number, rows_of(of))},
                 {tensor(out, rows_of(of))});
  };
  call(0, 8, rates.whole);
  side.forward("Torch.exp.0.forward", {tensor(rates.whole, rows_of(8))}, {tensor(rates.weight, rows_of(8))});
  for (int i = 1; i <= parts; ++i) {
    const std::string n = std::to_string(i - 1);
    call(i, rows, 3 + 0.1 * i * parts);
    side.forward("Tensor.sum." + n + ".forward", {tensor(3 + 0.1 * i * parts, rows_of(rows))},
                 {tensor(0.7 * i * rows, "[]")});
    side.forward("Tensor.__truediv__." + n + ".forward",
                 {tensor(0.7 * i * rows, "[]"), scalar("float", "8.0")}, {tensor(0.1 * i * rows, "[]")});
    side.backward("Tensor.sum." + n + ".backward", {tensor(1.0 / 8, "[]")}, {tensor(1.0 / 8, rows_of(rows))});
  }
  side.forward("Tensor.norm.0.forward", {tensor(rates.gradient, "[64, 64]")},
               {tensor(32 * rates.gradient, "[]")});
  side.forward("Tensor.add_.0.forward", {tensor(0.4, "[64, 64]"), tensor(rates.gradient, "[64, 64]")},
               {tensor(0.4 + rates.gradient, "[64, 64]")});
  return side;
}

RankDiagnosis compared(const DumpText& target, const DumpText& golden) {
  return diagnosed({.target = target, .golden = golden}, {},
                   modules_of({{"Tensor.add_.0.forward", "optimizer"}}));
}

TEST_CASE("a step that computes the whole batch, and then its rows in parts") {
  const DumpText golden = training(2, {});
  for (const int parts : {1, 4}) {
    CAPTURE(parts);
    const RankDiagnosis right = compared(training(parts, {}), golden);
    CHECK(no_evidence(right));
    CHECK(is_noted(right, parts == 1 ? "in 1 part in this run, in 2 in golden"
                                     : "in 2 parts in this run, in 1 in golden"));
    // Sums round otherwise in other parts.
    CHECK(no_evidence(compared(training(parts, {.gradient = 0.5 * (1 + 1e-6)}), golden)));
    CHECK(first(compared(training(parts, {.gradient = 0.25}), golden)).entry == "Tensor.norm.0.forward");
    CHECK(first(compared(training(parts, {.whole = 2.5, .weight = 0.4}), golden)).entry ==
          "Functional.linear.0.forward");
    CHECK(first(compared(training(parts, {.weight = 0.4}), golden)).entry == "Torch.exp.0.forward");
  }
}

TEST_CASE("a part of the batch that one side leaves out") {
  const auto parts = [](int number, int rows) {
    DumpText text;
    for (int i = 0; i < number; ++i) {
      const std::string n = std::to_string(i);
      text.forward("Functional.linear." + n + ".forward", {tensor(1 + i, rows_of(rows)), weight},
                   {tensor(3 + i, rows_of(rows))});
      text.forward("Module.m.Linear.forward." + n, {tensor(1 + i, rows_of(rows))},
                   {tensor(3 + i, rows_of(rows))});
    }
    return text;
  };
  const RankDiagnosis rank = compared(parts(3, 2), parts(2, 4));
  CHECK(first(rank).is_evidence());
  CHECK(first(rank).text.find(
            "computes 3 parts of the batch where golden computes 2, and all of them have 0.75 "
            "times as many elements as golden's") != std::string::npos);
  CHECK(is_one_cause(rank));
  CHECK(no_evidence(compared(parts(4, 2), parts(2, 4))));
}

TEST_CASE("two calls in place of one, whose halves go into the same call") {
  double guided = 1.5;
  SUBCASE("and are the same") {}
  SUBCASE("and are exchanged") {
    guided = 2.5;
  }
  const auto side = [&](int parts, double used) {
    DumpText text;
    for (int i = 0; i < parts; ++i) {
      const std::string n = std::to_string(i);
      const std::string shape = rows_of(8 / parts);
      text.forward("Functional.linear." + n + ".forward", {tensor(1 + i, shape), weight},
                   {tensor(3 + i, shape)});
      text.forward("Module.m.Linear.forward." + n, {tensor(1 + i, shape)}, {tensor(3 + i, shape)});
    }
    text.forward("Tensor.__sub__.0.forward", {tensor(used, rows_of(4)), tensor(3.5, rows_of(4))},
                 {tensor(0.3 + used, rows_of(4))});
    return text;
  };
  const RankDiagnosis rank = compared(side(2, guided), side(1, 1.5));
  CHECK(is_noted(rank, "computed in 2 parts in this run, in 1 in golden"));
  CHECK(no_evidence(rank) == (guided == 1.5));
  if (guided != 1.5) CHECK(first(rank).entry == "Tensor.__sub__.0.forward");
}

TEST_CASE("a copy of the model that samples in two calls in place of one") {
  const auto side = [&](int parts, double sampled) {
    DumpText text;
    text.forward("Functional.linear.0.forward", {tensor(1, rows_of(4)), weight}, {tensor(2, rows_of(4))});
    text.forward("Module.m.Linear.forward.0", {tensor(1, rows_of(4))}, {tensor(2, rows_of(4))});
    for (int i = 1; i <= parts; ++i)
      text.forward("Functional.linear." + std::to_string(i) + ".forward",
                   {tensor(4 + i, rows_of(8 / parts)), weight}, {tensor(6 + i, rows_of(8 / parts))});
    text.forward("Tensor.__sub__.0.forward", {tensor(sampled, rows_of(4)), tensor(3, rows_of(4))},
                 {tensor(0.2 * sampled, rows_of(4))});
    return text;
  };
  const auto within = [](std::string_view module) {
    return modules_of({{"Functional.linear.0.forward", "Module.m.Linear.forward.0"},
                       {"Functional.linear.1.forward", module},
                       {"Functional.linear.2.forward", module}});
  };
  const auto both_sides = [](testing::Asked& asked) {
    asked.rank.golden_construct = asked.rank.target_construct;
  };
  const Two right{.target = side(2, 5), .golden = side(1, 5)};
  CHECK(no_evidence(diagnosed(right, both_sides, within({}))));
  const Two wrong{.target = side(2, 6), .golden = side(1, 5)};
  CHECK(first(diagnosed(wrong, both_sides, within({}))).entry == "Tensor.__sub__.0.forward");
  // Calls within a module that runs as often are its own code, as heads that are computed one by one.
  CHECK_FALSE(is_noted(diagnosed(right, both_sides, within("Module.m.Linear.forward.0")), "computed in"));
}

}  // namespace msprobe::diagnosis::split_batch_test
