// SPDX-License-Identifier: Apache-2.0
// Differences of the code that no value showed. Where a value is wrong later, and its way leads to such a
// difference, the difference is the cause and the value its effect: both runs compute the same everywhere
// else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "diagnosis/gradient_paths.hpp"
#include "diagnosis/one_sided_runs.hpp"
#include "diagnosis/running_statistics.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class Suspects : WalkRule {
 public:
  Suspects(Walk& walk, OneSidedRuns& runs, GradientPaths& paths, const RunningStatistics& running)
      : WalkRule(walk), runs_(runs), paths_(paths), running_(running) {}

  /// Names the suspects that evidence by values leads to, once all entries were judged.
  void name();
  /// Keeps what follows from differences of the code that had no effect: the next step may take it.
  void remember(const std::vector<Finding>& hints);

 private:
  /// The entries of one side that take an entry's outputs, and those whose outputs it takes, by number.
  struct Graph {
    std::vector<std::vector<std::uint32_t>> consumers;
    std::vector<std::vector<std::uint32_t>> producers;
  };
  /// A run of calls that one side alone has, or a call that was given something else: its hint.
  struct Suspect {
    OneSidedRuns::Run* run = nullptr;
    std::uint32_t hint = pairing::kNone;  // entry under test
    explicit operator bool() const { return run != nullptr || hint != pairing::kNone; }
  };

  const Graph& graph_of(bool is_target);
  std::uint32_t maker_of(bool is_target, std::uint32_t api) const;
  Suspect suspect_at(bool is_target, std::uint32_t api);
  bool is_blameless(bool is_target, std::uint32_t api, const Finding& evidence);
  Suspect search(bool is_target, std::vector<std::uint32_t> open, const Finding& evidence, bool upstream);
  std::vector<std::uint32_t> users_of_parameters(bool is_target, const Finding& evidence) const;
  std::vector<std::uint32_t> users_of_gradients(bool is_target, std::string_view module) const;
  Suspect first_run_of(bool is_target, const std::vector<std::uint32_t>& calls);
  Suspect suspect_between(const Finding& evidence);
  OneSidedRuns::Run* collective_before(const Finding& evidence);
  bool sends_back_golden(std::uint32_t backward, const Finding& evidence) const;
  bool has_one_sided_gradient(std::uint32_t backward) const;
  Suspect suspect_of(const Finding& evidence);
  void prefer_recorded_code();
  void prefer_other_pass();
  std::uint32_t nearest_cut(std::uint32_t end) const;
  bool is_of_other_size(const Finding& found) const;
  bool is_passed_on(const Finding& found) const;
  double error_of(const Finding& evidence) const;
  const Finding* past_suspect(const Finding& evidence) const;
  bool differs(std::uint32_t target_api) const;
  void keep_contents(bool is_target, std::vector<std::uint32_t> calls,
                     const std::shared_ptr<const Finding>& hint);

  OneSidedRuns& runs_;
  GradientPaths& paths_;
  const RunningStatistics& running_;
  std::optional<Graph> target_graph_;
  std::optional<Graph> golden_graph_;
  std::vector<std::uint32_t> lost_;          // forward entries on the way whose backward one side alone has
  std::unordered_set<std::uint32_t> hints_;  // entries under test that were given something else
};

}  // namespace msprobe::diagnosis
