// SPDX-License-Identifier: Apache-2.0
// Models that a test makes by chance, with faults at known calls: both sides' dumps, and the answer to them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnosis/conclusion.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::testing {

/// Numbers by chance, the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t below(std::uint64_t end) { return next() % end; }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11U) * 0x1p-53;
  }
  /// Each order of magnitude is as likely as another.
  double magnitude(double low, double high) { return std::exp(between(std::log(low), std::log(high))); }

 private:
  std::uint64_t next() {  // splitmix64
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t value = state_;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31U);
  }

  std::uint64_t state_;
};

/// A call of such a model.
struct MadeCall {
  std::string operation;
  std::vector<std::size_t> from;    // the calls whose outputs it takes; none: it takes data
  std::vector<double> data_errors;  // of the target's data, if it takes data
  double size = 1;                  // of its output
  double weight = 0;                // size of its parameter; 0: it has none
  double passes = 1;                // the part of the inputs' error that comes out
  double rounding = 0;
  double fault = 0;         // the error that the target's call adds
  double back_fault = 0;    // the same of its gradients
  bool argument = false;    // the target's call is given another argument, which makes that error
  bool everywhere = false;  // errors of its output scale all of it, instead of single elements
};

class MadeModel {
 public:
  std::vector<MadeCall> calls;
  std::string dtype = "torch.float32";
  double u = measuring::kSingleRoundoff;
  bool backward = false;  // gradients are recorded as well

  Draw draw;

  explicit MadeModel(std::uint64_t seed) : draw(seed) {}

  std::size_t add(std::string operation, std::vector<std::size_t> from) {
    MadeCall call;
    call.operation = std::move(operation);
    call.size = draw.between(1, 9);
    if (call.operation == "linear") call.weight = draw.between(1, 9);
    call.passes = draw.between(0.3, 1);
    call.rounding = u * draw.between(0, 1.5);
    call.everywhere = draw.below(2) == 0;
    if (from.empty()) call.data_errors.assign(call.operation == "add" ? 2 : 1, 0);
    call.from = std::move(from);
    calls.push_back(std::move(call));
    return calls.size() - 1;
  }

  /// Adds calls that each take the output of the one before, also to `added`; returns the last one's number.
  std::size_t chain(std::size_t from, std::size_t length, std::vector<std::size_t>& added) {
    constexpr std::array<std::string_view, 4> kOperations = {"linear", "gelu", "layer_norm", "linear"};
    for (std::size_t i = 0; i < length; ++i) {
      from = add(std::string(kOperations[draw.below(kOperations.size())]), {from});
      added.push_back(from);
    }
    return from;
  }

  /// A random order in which each call comes after those it takes from.
  std::vector<std::size_t> any_order() {
    std::vector<std::size_t> order;
    std::vector<bool> done(calls.size());
    while (order.size() < calls.size()) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const bool open = std::any_of(calls[i].from.begin(), calls[i].from.end(),
                                      [&](std::size_t each) { return !done[each]; });
        if (!done[i] && !open) ready.push_back(i);
      }
      order.push_back(ready[draw.below(ready.size())]);
      done[order.back()] = true;
    }
    return order;
  }
};

/// A finding that is no consequence of another, and the call that it names.
struct Named {
  std::size_t call = 0;
  bool backward = false;
  Kind kind = Kind::introduced;
  Confidence confidence = Confidence::likely;
  double excess = 0;
  std::string place;

  /// The excess depends a little on the coarsest type so far.
  bool operator==(const Named& other) const {
    return std::tie(call, backward, kind, confidence, place) ==
           std::tie(other.call, other.backward, other.kind, other.confidence, other.place);
  }
};

inline std::string tensor_of(const MadeModel& model, double size, double error, bool everywhere) {
  return everywhere ? tensor(size * (1 + error), "[64, 64]", model.dtype)
                    : rough(size, error, "[64, 64]", model.dtype);
}

/// The answer, the culprit first. `exchanged`: golden is the side under test.
inline std::vector<Named> answer_of(const MadeModel& model, const std::vector<std::size_t>& order,
                                    bool exchanged = false) {
  const std::vector<MadeCall>& calls = model.calls;
  std::vector<double> errors(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    double taken = 0;
    for (const std::size_t from : calls[i].from) taken = std::max(taken, errors[from]);
    for (const double data : calls[i].data_errors) taken = std::max(taken, data);
    errors[i] = taken * calls[i].passes + calls[i].rounding + calls[i].fault;
  }
  Two two;
  std::map<std::string, int> numbers;
  std::vector<std::string> names(calls.size());
  std::vector<std::pair<std::size_t, bool>> entries;
  const auto put = [&](DumpText& side, std::size_t i, bool target) {
    const MadeCall& call = calls[i];
    Texts inputs;
    for (const std::size_t from : call.from)
      inputs.push_back(tensor_of(model, calls[from].size, target ? errors[from] : 0, calls[from].everywhere));
    for (std::size_t k = 0; k < call.data_errors.size(); ++k) {
      inputs.push_back(tensor_of(model, call.size + 10 + static_cast<double>(k),
                                 target ? call.data_errors[k] : 0, call.everywhere));
    }
    if (call.weight > 0) inputs.push_back(tensor_of(model, 20 + call.weight, 0, true));
    if (call.argument) {
      const double value = static_cast<double>(i) + (target ? 0.5 : 0.25);
      inputs.push_back(scalar("float", std::to_string(value)));
    }
    side.forward(names[i], inputs, {tensor_of(model, call.size, target ? errors[i] : 0, call.everywhere)});
  };
  for (const std::size_t i : order) {
    names[i] =
        "Functional." + calls[i].operation + "." + std::to_string(numbers[calls[i].operation]++) + ".forward";
    put(two.target, i, true);
    put(two.golden, i, false);
    entries.emplace_back(i, false);
  }
  if (model.backward) {
    // The gradients that the consumers of each call's output send back: sizes and errors.
    std::vector<std::vector<std::pair<double, double>>> sent(calls.size());
    for (std::size_t at = order.size(); at-- > 0;) {
      const std::size_t i = order[at];
      const MadeCall& call = calls[i];
      double size = 0;
      double error = 0;
      for (const auto& [one, its_error] : sent[i]) {
        size = std::hypot(size, one);
        error = std::max(error, its_error);
      }
      if (sent[i].empty()) size = 0.3 + call.size / 16;
      double taken = errors[i];
      for (const std::size_t from : call.from) taken = std::max(taken, errors[from]);
      const double out = std::max(error, taken) * call.passes + call.rounding + call.back_fault;
      std::string name = names[i];
      name.replace(name.find(".forward"), std::string::npos, ".backward");
      Texts ours;
      Texts theirs;
      for (std::size_t k = 0; k < call.from.size(); ++k) {
        const double its_size = 0.1 + call.size / (8 + static_cast<double>(k));
        ours.push_back(tensor_of(model, its_size, out, call.everywhere));
        theirs.push_back(tensor_of(model, its_size, 0, call.everywhere));
        sent[call.from[k]].emplace_back(its_size, out);
      }
      const bool whole = !sent[i].empty() && calls[i].everywhere;
      two.target.backward(name, {tensor_of(model, size, error, whole)}, ours);
      two.golden.backward(name, {tensor_of(model, size, 0, whole)}, theirs);
      entries.emplace_back(i, true);
    }
  }
  if (exchanged) std::swap(two.target, two.golden);
  const Diagnosis answer = conclude({diagnosed(two)});
  std::vector<Named> named;
  for (std::size_t i = 0; i < answer.independent; ++i) {
    const Finding& found = answer.findings[i];
    const auto& [call, backward] = entries[found.target_api];
    named.push_back({call, backward, found.kind, found.confidence, found.excess, found.place});
  }
  return named;
}

}  // namespace msprobe::diagnosis::testing
