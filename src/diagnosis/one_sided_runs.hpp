// SPDX-License-Identifier: Apache-2.0
// Runs of consecutive entries that one side alone has: the errors that they carry on, and whether they have
// an effect.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// The forward calls of a step, of the target and of golden, and where its backward begins.
struct StepCalls {
  std::unordered_map<std::string_view, std::array<std::size_t, 2>> times;  // of operations
  std::array<std::map<std::pair<std::string_view, std::string_view>, std::vector<std::uint32_t>>, 2>
      places;  // by the call of a module and the operation
  std::array<std::uint32_t, 2> first_backward{};
};

class OneSidedRuns : WalkRule {
 public:
  struct Run {
    std::vector<std::uint32_t> target;  // entries of the target, the first ones only
    std::vector<std::uint32_t> golden;
    std::uint64_t order = 0;
    double error = 0;        // largest error before it
    unsigned looks = 0;      // number of later entries that may still show its effect
    double u = 0;            // what the roundings of its calls, or of an entry so far, leave in its result
    bool exchanges = false;  // between ranks: it has an effect where a call takes its results
    bool supposed = false;   // unrecorded code must have handed on its results to where they show
    bool consumed = false;
    bool settled = false;
  };

  explicit OneSidedRuns(Walk& walk) : WalkRule(walk) {}

  void advance_golden(std::uint32_t end);
  void target_alone(std::uint32_t api);
  void close_run() { run_open_ = false; }
  void look(EntryPair& entry);
  /// The error that recorded updates may have caused in parameters that a run takes.
  double trained_error() const {
    return walk_.drift ? 0
                       : std::max({largest_.parameters, largest_.updated, history_.forward, history_.noise});
  }
  bool is_of_optimizer(bool is_target, std::uint32_t api) const;
  double carried(std::uint32_t target_item, std::uint32_t golden_item) const;
  /// The difference that two implementations of an optimizer's step may make; 0 for all other runs.
  double of_steps(const Run& run, double u) const;

  /// The run that an entry of one side alone is in; null if it is in none.
  Run* run_of_target(std::uint32_t api) { return run_in(run_of_target_, api); }
  Run* run_of_golden(std::uint32_t api) { return run_in(run_of_golden_, api); }
  /// Reports a run that has an effect. `given`: how the effect shows besides the error; may be empty.
  void settle(Run& run, std::string_view consumer, double error, double before, std::string_view given = {});
  /// `item`, if given, comes from unrecorded code, which may have selected it from the run's outputs.
  bool settle_between(std::uint32_t producer, const EntryPair& entry, double error, double before,
                      std::string_view given = {}, std::uint32_t item = pairing::kNone);
  /// The same for a wrong mask that unrecorded code made of the output of an exchanged comparison, by a
  /// negation or a view. False if it fits none.
  bool settle_mask(std::uint32_t target_item, const EntryPair& entry, double error, double before);
  /// Reports the run that takes the output of a call, if the gradient that arrives at the call is wrong.
  bool settle_behind(std::uint32_t forward, const EntryPair& backward, double error, double before);
  const std::vector<Run>& runs() const { return runs_; }
  /// The last run without a visible effect between the orders of two entries; null if no such run exists.
  Run* last_between(std::uint64_t after, std::uint64_t before);
  /// Whether the effect of a run may still show.
  bool any_waits() const;
  /// Reports the runs that change gradients after the backward: they have an effect.
  void settle_gradients();
  /// Reports the remaining runs, which have no visible effect, as hints.
  void finish();

 private:
  void join_run(bool is_target, std::uint32_t api);
  double grown(const dump::Side& side, std::uint32_t api, double error);
  bool takes_from(const EntryPair& entry, const Run& run);
  bool may_be_selected(const Run& run, const EntryPair& entry, std::uint32_t item) const;
  bool is_left_out(bool is_target, std::uint32_t api) const;
  Run* run_in(const std::unordered_map<std::uint32_t, std::uint32_t>& runs, std::uint32_t api);
  Run* run_that_takes(const ContentKeys& keys, std::uint32_t api,
                      const std::unordered_map<std::uint32_t, std::uint32_t>& runs);
  std::uint64_t order_behind(std::uint32_t golden) const;
  const StepCalls& step_calls();
  std::string how_often(const Run& run);
  std::string_view module_around(bool golden, std::uint32_t api) const;
  std::string_view at_another_place(const Run& run);
  bool is_behind_end(const Run& run) const;
  bool note_end(const Run& run, Finding& found) const;
  std::string other_epsilon(const Run& run) const;
  void settle_gradient(Run& run, const std::set<std::string>& same);
  std::string changed_gradient(const ContentKeys& keys, std::uint32_t api, const ContentMap& gradients) const;

  std::unordered_map<std::uint32_t, double> alone_target_;  // carried errors of entries without a partner
  std::unordered_map<std::uint32_t, double> alone_golden_;
  std::unordered_map<std::uint32_t, std::uint32_t> run_of_target_;
  std::unordered_map<std::uint32_t, std::uint32_t> run_of_golden_;
  std::vector<Run> runs_;
  std::size_t first_open_ = 0;  // runs before it are settled or out of sight
  bool run_open_ = false;
  std::optional<StepCalls> step_calls_;
};

}  // namespace msprobe::diagnosis
