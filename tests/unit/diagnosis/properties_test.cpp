// SPDX-License-Identifier: Apache-2.0
// Properties that every answer has, tested with random models of fixed seeds.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "unit/diagnosis/made_models.hpp"

namespace msprobe::diagnosis::properties_test {
using testing::answer_of;
using testing::MadeModel;
using testing::Named;

namespace {

constexpr std::uint64_t kCases = 500;

/// All of a kind of case hold.
void hold(const char* what, const std::function<bool(std::uint64_t)>& holds) {
  std::uint64_t failed = 0;
  std::uint64_t first = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    if (holds(seed)) continue;
    if (failed++ == 0) first = seed;
  }
  CAPTURE(what);
  CAPTURE(first);
  CHECK(failed == 0);
}

/// Branches that take from one trunk of equal calls, and often a sum of their outputs.
struct Branches {
  MadeModel model;
  std::vector<std::vector<std::size_t>> branches;

  explicit Branches(std::uint64_t seed, std::size_t least = 2) : model(seed) {
    std::vector<std::size_t> trunk = {model.add("linear", {})};
    model.chain(trunk.front(), 1 + model.draw.below(4), trunk);
    const std::size_t n = least + model.draw.below(3);
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < n; ++i) {
      branches.emplace_back();
      ends.push_back(
          model.chain(trunk[model.draw.below(trunk.size())], 1 + model.draw.below(4), branches.back()));
    }
    std::size_t sum = ends.front();
    if (model.draw.below(2) == 0) {
      for (std::size_t i = 1; i < n; ++i) sum = model.add("add", {sum, ends[i]});
    }
  }

  std::size_t any_of(std::size_t branch) {
    return branches[branch][model.draw.below(branches[branch].size())];
  }

  /// One fault in each branch but those ahead of `first`; the calls.
  std::set<std::size_t> fail(std::size_t first = 0) {
    std::set<std::size_t> faults;
    for (std::size_t i = first; i < branches.size(); ++i) {
      const std::size_t call = any_of(i);
      model.calls[call].fault = model.draw.magnitude(1e-4, 0.5);
      model.calls[call].argument = model.draw.below(4) == 0;
      faults.insert(call);
    }
    return faults;
  }
};

/// The surest first, then the largest; of the same both, any.
bool precedes(const Named& a, const Named& b) {
  return std::make_pair(a.confidence, a.excess) > std::make_pair(b.confidence, b.excess);
}

std::set<std::size_t> calls_of(const std::vector<Named>& answer) {
  std::set<std::size_t> calls;
  for (const Named& each : answer) calls.insert(each.call);
  return calls;
}

std::vector<std::size_t> as_made(const MadeModel& model) {
  std::vector<std::size_t> order(model.calls.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  return order;
}

}  // namespace

TEST_CASE("properties: independent faults are all named, in any order, and nothing else is") {
  hold("independent faults", [](std::uint64_t seed) {
    Branches made(seed);
    const std::set<std::size_t> faults = made.fail();
    const std::vector<Named> answer = answer_of(made.model, made.model.any_order());
    return answer.size() == faults.size() && calls_of(answer) == faults;
  });
}

TEST_CASE("properties: faults of gradients are all named, in any order") {
  hold("independent faults in the backward", [](std::uint64_t seed) {
    Branches made(seed);
    made.model.backward = true;
    std::set<std::size_t> faults;
    for (std::size_t i = 0; i < made.branches.size(); ++i) {
      const std::size_t call = made.any_of(i);
      made.model.calls[call].back_fault = made.model.draw.magnitude(1e-3, 0.5);
      faults.insert(call);
    }
    const std::vector<Named> answer = answer_of(made.model, made.model.any_order());
    const bool all_back =
        std::all_of(answer.begin(), answer.end(), [](const Named& each) { return each.backward; });
    return all_back && answer.size() == faults.size() && calls_of(answer) == faults;
  });
}

TEST_CASE("properties: faults of both passes") {
  hold("one fault, gradients recorded", [](std::uint64_t seed) {
    Branches made(seed);
    made.model.backward = true;
    const std::set<std::size_t> faults = made.fail(made.branches.size() - 1);
    const std::vector<Named> answer = answer_of(made.model, made.model.any_order());
    return answer.size() == 1 && calls_of(answer) == faults && !answer[0].backward;
  });
  hold("independent forward faults, gradients recorded", [](std::uint64_t seed) {
    Branches made(seed);
    made.model.backward = true;
    const std::set<std::size_t> faults = made.fail();
    const std::vector<Named> answer = answer_of(made.model, made.model.any_order());
    return answer.size() == faults.size() && calls_of(answer) == faults;
  });
}

TEST_CASE("properties: exchanging independent branches changes nothing") {
  hold("exchanged branches", [](std::uint64_t seed) {
    Branches made(seed);
    made.fail(made.model.draw.below(2));
    std::vector<Named> one = answer_of(made.model, made.model.any_order());
    std::vector<Named> other = answer_of(made.model, made.model.any_order());
    for (std::vector<Named>* const answer : {&one, &other}) {
      if (!std::is_sorted(answer->begin(), answer->end(), precedes)) return false;
      std::sort(answer->begin(), answer->end(), [](const Named& a, const Named& b) {
        return precedes(a, b) || (!precedes(b, a) && a.call < b.call);
      });
    }
    return one == other;
  });
}

TEST_CASE("properties: an equal branch changes nothing") {
  hold("equal branch", [](std::uint64_t seed) {
    Branches made(seed);
    made.fail(made.model.draw.below(2));
    const std::vector<Named> before = answer_of(made.model, as_made(made.model));
    std::vector<std::size_t> added;
    made.model.chain(0, 1 + made.model.draw.below(4), added);
    std::vector<std::size_t> order = as_made(made.model);
    // Anywhere after the call that it takes from.
    const std::size_t at = 1 + made.model.draw.below(order.size() - added.size());
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(at),
                order.end() - static_cast<std::ptrdiff_t>(added.size()), order.end());
    return answer_of(made.model, order) == before;
  });
}

TEST_CASE("properties: a larger error is not lost") {
  hold("larger error", [](std::uint64_t seed) {
    Branches made(seed);
    const std::set<std::size_t> faults = made.fail();
    const std::size_t call = *faults.begin();
    std::vector<std::size_t> order = made.model.any_order();
    bool named = false;
    for (double error = 1e-6; error < 1e3; error *= 30) {
      made.model.calls[call].fault = error;
      const bool now = calls_of(answer_of(made.model, order)).contains(call);
      if (named && !now) return false;
      named = named || now;
    }
    return named;
  });
}

TEST_CASE("properties: of two wrong inputs the larger leads") {
  hold("larger input", [](std::uint64_t seed) {
    Branches made(seed);
    MadeModel& model = made.model;
    const std::size_t call = model.add("add", {});
    std::vector<double>& errors = model.calls[call].data_errors;
    errors[0] = model.draw.magnitude(1e-4, 0.5);
    errors[1] = std::min(0.9, errors[0] * model.draw.magnitude(1.5, 1e3));
    std::size_t larger = 1;
    if (model.draw.below(2) == 0) {
      std::swap(errors[0], errors[1]);
      larger = 0;
    }
    const std::vector<Named> answer = answer_of(model, model.any_order());
    return answer.size() == 1 && answer[0].call == call &&
           answer[0].place == "input." + std::to_string(larger);
  });
}

TEST_CASE("properties: exchanged sides exchange the sides in the answer") {
  hold("exchanged sides", [](std::uint64_t seed) {
    Branches made(seed);
    made.fail();
    const std::vector<std::size_t> order = made.model.any_order();
    const auto by_call = [](std::vector<Named> answer) {
      std::sort(answer.begin(), answer.end(), [](const Named& a, const Named& b) { return a.call < b.call; });
      return answer;
    };
    return by_call(answer_of(made.model, order)) == by_call(answer_of(made.model, order, true));
  });
}

TEST_CASE("properties: another operation of the same kind changes only the name") {
  hold("renamed operation", [](std::uint64_t seed) {
    Branches made(seed);
    made.fail();
    const std::vector<std::size_t> order = made.model.any_order();
    const std::vector<Named> answer = answer_of(made.model, order);
    for (testing::MadeCall& call : made.model.calls) {
      if (call.operation == "gelu") call.operation = "silu";
      if (call.operation == "layer_norm") call.operation = "group_norm";
    }
    return answer_of(made.model, order) == answer;
  });
}

TEST_CASE("properties: there is never evidence from rounding alone") {
  hold("rounding", [](std::uint64_t seed) {
    constexpr std::pair<const char*, double> kTypes[] = {
        {"torch.float32", 0x1p-24}, {"torch.bfloat16", 0x1p-8}, {"torch.float16", 0x1p-11}};
    Branches made(seed);
    const auto& [dtype, u] = kTypes[made.model.draw.below(3)];
    made.model.dtype = dtype;
    made.model.backward = made.model.draw.below(2) == 0;
    for (testing::MadeCall& call : made.model.calls) {
      call.rounding *= u / measuring::kSingleRoundoff;
      call.everywhere = false;
    }
    return answer_of(made.model, made.model.any_order()).empty();
  });
}

}  // namespace msprobe::diagnosis::properties_test
