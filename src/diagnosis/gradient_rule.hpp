// SPDX-License-Identifier: Apache-2.0
// Judges the outputs of backward entries, and the gradients of parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "diagnosis/call_rule.hpp"
#include "diagnosis/gradient_paths.hpp"
#include "diagnosis/one_sided_runs.hpp"
#include "diagnosis/output_rule.hpp"
#include "diagnosis/rewrites.hpp"
#include "diagnosis/step_rule.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "diagnosis/walk.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

class GradientRule : WalkRule {
 public:
  GradientRule(Walk& walk, OneSidedRuns& runs, Rewrites& rewrites, StepExplanations& explanations,
               GradientPaths& paths, CallRule& calls, OutputRule& outputs)
      : WalkRule(walk),
        runs_(runs),
        rewrites_(rewrites),
        explanations_(explanations),
        paths_(paths),
        calls_(calls),
        outputs_(outputs),
        backward_of_(walk.target.apis.size(), pairing::kNone) {}

  void examine_backward(EntryPair& entry);
  void examine_parameters(EntryPair& entry);

 private:
  Upstream upstream_of(const EntryPair& entry, std::uint32_t forward) const;
  double norm_of(std::uint32_t item) const;
  double left_of(double terms, std::uint32_t item) const;
  double gradient_scale(const EntryPair& entry, std::uint32_t item);
  double share_of_gradients(std::uint32_t item);
  bool has_parameter_like(const EntryPair& entry, std::uint32_t golden_forward, const dump::Item& gradient,
                          double& input) const;
  std::optional<double> broadcast_scale(const EntryPair& entry, std::uint32_t golden_forward,
                                        std::uint32_t item) const;
  double softmax_scale(const EntryPair& entry, std::uint32_t golden_forward, std::uint32_t index) const;
  double accumulated(const EntryPair& entry, std::uint32_t item);
  bool is_of_other_call(const EntryPair& entry, std::uint32_t forward) const;
  std::string wrong_backward(std::uint32_t forward, double ahead, double onset) const;
  void trace(const EntryPair& entry, std::uint32_t item);
  bool agreed_before(const EntryPair& entry) const;
  bool is_reduced_otherwise(const EntryPair& entry, std::uint32_t item);
  double best_match(const EntryPair& entry, std::uint32_t item, double enough) const;

  OneSidedRuns& runs_;
  Rewrites& rewrites_;
  StepExplanations& explanations_;
  GradientPaths& paths_;
  CallRule& calls_;
  OutputRule& outputs_;
  std::optional<std::pair<TakenTensors, TakenTensors>> taken_tensors_;  // known once they were asked for
  /// Norms that the optimizers of both sides take, by parameter; known once they were asked for.
  std::optional<TakenNorms> taken_;
  std::optional<double> largest_gradient_;  // of golden's parameters: the largest root mean square
  bool changed_between_ = false;            // evidence shows gradients that change between two passes
  std::vector<std::uint32_t> backward_of_;  // by forward entry under test: its last backward so far
};

}  // namespace msprobe::diagnosis
