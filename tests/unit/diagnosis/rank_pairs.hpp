// SPDX-License-Identifier: Apache-2.0
// Pairs of small dumps, and what the diagnosis of a rank says of them.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/rank_walk.hpp"
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

using Construct = std::shared_ptr<const dump::ConstructBeside>;
/// The module that encloses each entry.
inline Construct modules_of(std::initializer_list<std::pair<std::string_view, std::string_view>> parents) {
  return std::make_shared<const dump::ConstructBeside>(construct_of(parents));
}

/// The second reading of a rule; by default there is nothing to read.
struct NoFiles : SecondReading {
  std::vector<Replayed> replay(std::uint32_t, std::uint32_t) override { return {}; }
  std::optional<Update> update(std::uint32_t, std::uint32_t) override { return std::nullopt; }
  bool same_elements(std::uint32_t, std::uint32_t) override { return false; }
  std::string golden_line(std::string_view) override { return {}; }
  Noise noise(std::uint32_t) override { return {}; }
};

/// A rank about to be diagnosed.
struct Asked {
  measuring::MeasuredRank rank;
  DiagnosisOptions options;
  std::unique_ptr<SecondReading> reading = std::make_unique<NoFiles>();
  MeasureEntry measure_entry;

  /// As the folders say.
  void at_step(int step) {
    for (dump::Side* side : {&rank.target, &rank.golden})
      side->json = "run/step" + std::to_string(step) + "/rank0/dump.json";
  }
};

using Configure = std::function<void(Asked&)>;

inline RankDiagnosis diagnosed(const Two& two, History& history, const Configure& configure = {},
                               const Construct& construct = nullptr) {
  Asked asked;
  measuring::MeasuredRank& rank = asked.rank;
  rank.target = two.target.side("statistics", "mix", nullptr, two.framework);
  rank.golden = two.golden.side();
  const dump::ConstructTable* const modules = construct ? &construct->table() : nullptr;
  rank.alignment =
      std::make_shared<const pairing::Alignment>(pairing::align(rank.target, rank.golden, modules, modules));
  rank.precision = std::make_shared<const measuring::StatisticsPrecision>(rank.target, rank.golden,
                                                                          rank.alignment->golden_item_of);
  rank.target_construct = construct;
  if (configure) configure(asked);
  history.precision = history.precision ? history.precision : rank.precision;
  return RankWalk(rank, asked.options, {}, *asked.reading, history, asked.measure_entry).run();
}

inline RankDiagnosis diagnosed(const Two& two, const Configure& configure = {},
                               const Construct& construct = nullptr) {
  History history;
  return diagnosed(two, history, configure, construct);
}

/// As if tensors had been read: what the statistics show.
inline void with_tensors(Asked& asked) {
  measuring::MeasuredRank& rank = asked.rank;
  rank.mode = measuring::Mode::tensor;
  const std::vector<std::uint32_t>& golden = rank.alignment->golden_item_of;
  for (std::uint32_t i = 0; i < golden.size(); ++i) {
    rank.rows.push_back({.target = i, .golden = golden[i]});
    measuring::TensorMetrics& metrics = rank.metrics.emplace_back();
    if (golden[i] != pairing::kNone)
      metrics.measure =
          measuring::measure(rank.target, rank.target.items[i], rank.golden, rank.golden.items[golden[i]]);
  }
}

inline bool no_evidence(const RankDiagnosis& rank) {
  return rank.evidence == 0 && (rank.findings.empty() || !rank.findings.front().is_evidence());
}

inline const Finding& first(const RankDiagnosis& rank) {
  REQUIRE(!rank.findings.empty());
  return rank.findings.front();
}

/// All evidence but the first follows from it.
inline bool is_one_cause(const RankDiagnosis& rank) {
  return !rank.findings.empty() &&
         std::all_of(rank.findings.begin() + 1, rank.findings.end(),
                     [](const Finding& each) { return each.downstream || !each.is_evidence(); });
}

inline std::uint64_t count(const RankDiagnosis& rank, Origin origin) {
  return rank.counts[static_cast<std::size_t>(origin)];
}

}  // namespace msprobe::diagnosis::testing
