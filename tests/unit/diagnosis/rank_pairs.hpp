// SPDX-License-Identifier: Apache-2.0
// Pairs of small dumps, and what the diagnosis of a rank says of them.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/dumps.hpp"

namespace msprobe::diagnosis::testing {

/// Both sides at once.
struct Two {
  DumpText target;
  DumpText golden;
  std::string_view framework = "pytorch";  // of the target

  Two& forward(std::string_view name, const Texts& inputs, const Texts& outputs, const Texts& golden_inputs,
               const Texts& golden_outputs) {
    target.forward(name, inputs, outputs);
    golden.forward(name, golden_inputs, golden_outputs);
    return *this;
  }
  Two& backward(std::string_view name, const Texts& inputs, const Texts& outputs, const Texts& golden_inputs,
                const Texts& golden_outputs) {
    target.backward(name, inputs, outputs);
    golden.backward(name, golden_inputs, golden_outputs);
    return *this;
  }
};

inline constexpr double kNoise = 1e-7;

/// Three linear layers; the input of each is the output of the one before, but for `changes` of the target.
struct Chain {
  std::vector<std::string> inputs;  // of the target
  std::vector<std::string> weights;
  std::vector<std::string> outputs;
  std::vector<Texts> arguments = {{}, {}, {}};
  std::vector<Texts> golden_arguments = {{}, {}, {}};

  Chain() {
    for (int i = 0; i < 3; ++i) {
      inputs.push_back(i == 0 ? tensor(1) : rough(1 + i, kNoise));
      weights.push_back(tensor(0.1 + i, "[64, 64]"));
      outputs.push_back(rough(2 + i, kNoise));
    }
  }
  Two text() const {
    Two two;
    for (std::size_t i = 0; i < 3; ++i) {
      Texts ours = {inputs[i], weights[i]};
      Texts theirs = {i == 0 ? tensor(1) : tensor(1 + static_cast<double>(i)),
                      tensor(0.1 + static_cast<double>(i), "[64, 64]")};
      ours.insert(ours.end(), arguments[i].begin(), arguments[i].end());
      theirs.insert(theirs.end(), golden_arguments[i].begin(), golden_arguments[i].end());
      two.forward("Functional.linear." + std::to_string(i) + ".forward", ours, {outputs[i]}, theirs,
                  {tensor(2 + static_cast<double>(i))});
    }
    return two;
  }
};

using Configure = std::function<void(RankPair&, const dump::Side&, const dump::Side&)>;

inline RankDiagnosis diagnosed(const Two& two, History& history, const Configure& configure = {},
                               const dump::ConstructTable* construct = nullptr) {
  const dump::Side target = two.target.side("statistics", "mix", nullptr, two.framework);
  const dump::Side golden = two.golden.side();
  const Alignment alignment = align(target, golden, construct, construct);
  RankPair pair;
  pair.target = &target;
  pair.golden = &golden;
  pair.alignment = &alignment;
  pair.precision =
      std::make_shared<const StatisticsPrecision>(target, golden, pair_items(target, golden, alignment));
  pair.target_construct = construct;
  if (configure) configure(pair, target, golden);
  return diagnose_rank(pair, history);
}

inline RankDiagnosis diagnosed(const Two& two, const Configure& configure = {},
                               const dump::ConstructTable* construct = nullptr) {
  History history;
  return diagnosed(two, history, configure, construct);
}

/// As if tensors had been read: what the statistics tell.
inline void with_tensors(RankPair& pair, const dump::Side& target, const dump::Side& golden) {
  pair.tensors = [&](std::uint32_t t, std::uint32_t g) -> std::optional<Measure> {
    return measure(target, target.items[t], golden, golden.items[g]);
  };
}

inline bool no_evidence(const RankDiagnosis& rank) {
  return rank.evidence == 0 && (rank.findings.empty() || !rank.findings.front().is_evidence());
}

inline const Finding& first(const RankDiagnosis& rank) {
  REQUIRE(!rank.findings.empty());
  return rank.findings.front();
}

inline std::uint64_t count(const RankDiagnosis& rank, Origin origin) {
  return rank.counts[static_cast<std::size_t>(origin)];
}

}  // namespace msprobe::diagnosis::testing
