// SPDX-License-Identifier: Apache-2.0
// The walk over the entries of a rank, in the order of execution, that finds its evidence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnosis/flow.hpp"
#include "diagnosis/imports.hpp"
#include "diagnosis/item_errors.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/recorders.hpp"
#include "diagnosis/second_reading.hpp"
#include "diagnosis/step_rule.hpp"
#include "diagnosis/updates.hpp"
#include "dump/names.hpp"
#include "pairing/operations.hpp"
#include "support/text_pool.hpp"

namespace msprobe::diagnosis {

class RankJudge {
 public:
  /// `history` has its precision.
  RankJudge(const measuring::MeasuredRank& rank, const DiagnosisOptions& options,
            const std::vector<std::string>& framework_frames, SecondReading& reading, History& history,
            const MeasureEntry& measure_entry);
  RankDiagnosis run();

 private:
  /// An entry pair while it is judged.
  struct Entry {
    std::uint32_t target = 0;
    std::uint32_t golden = 0;
    dump::EntryName name;
    Nature nature = Nature::ordinary;
    bool compound = false;  // a module whose operations are recorded
    bool communication = false;
    bool optimizer = false;
    double u = 0;
    double e_in = 0;
    double b_in = 0;
    double spread = 0;  // by how much the errors of its inputs, few as their elements may be, change a norm
    double e_out = 0;
    double hidden = 0;     // what statistics do not show of what went in
    double worst_in = 0;   // as measured, for the texts
    double grown = 1;      // see amplification()
    bool touched = false;  // takes something from evidence
    bool tainted = false;  // takes what nobody recorded, with an error that evidence may have made
    std::optional<Finding> best;
  };
  /// Entries in a row that one side alone has.
  struct Run {
    std::vector<std::uint32_t> target;  // the first of them
    std::vector<std::uint32_t> golden;
    std::uint64_t order = 0;
    double error = 0;    // largest before it
    unsigned looks = 0;  // entries behind it that may still show its effect
    bool consumed = false;
    bool settled = false;
  };

  /// An argument of the first entry that was called so, and how often others were.
  struct Repeated {
    std::uint32_t first = 0;
    std::uint64_t times = 0;
  };
  /// What of an input is not seen, and the entry that made it.
  struct Unseen {
    std::string text;
    std::string_view maker;
  };
  enum class Alone : std::uint8_t { neither, target, golden, both };

  // rank_judge.cpp: the order, and what every entry needs
  void judge(std::uint32_t api);
  void defer_gradients();
  /// Of the entry under test, as a Finding has it.
  std::uint64_t order_of(std::uint32_t api) const;
  void mark_compounds();
  void keep_open_modules();
  void forward_pair(Entry& entry);
  void finish_entry(Entry& entry);
  /// Is there certain evidence, and nothing open that could be earlier or make something else of it?
  bool may_stop(const Entry& entry) const;
  void leave_out(std::uint32_t first);
  void finish();
  /// Will anyone read the words of a finding with this excess? Most entries have none, and there is room for
  /// few.
  bool is_shown(double excess) const { return excess >= kHint && !full_; }
  void offer(Entry& entry, Finding finding);
  Finding finding(const Entry& entry, Kind kind, Rule rule, double excess) const;
  void name_places(Finding& finding, std::uint32_t target_api, std::uint32_t golden_api) const;
  std::string module_around(std::uint32_t target_api, std::uint32_t golden_api) const;
  void keep(Finding finding, double before);
  void keep_parameters();
  void take_notes();
  void assess_drift();
  double foreseen(std::uint32_t item, std::uint32_t golden) const;
  void note_drift();
  void communicate(Entry& entry);
  void find_origins();
  Origin origin_of(std::uint32_t item, const std::vector<const Finding*>& introduced, double clean) const;
  void measure_inputs(Entry& entry);
  double forward_error() const;

  // one_sided_runs.cpp
  void advance_golden(std::uint32_t end);
  void close_run();
  void target_alone(std::uint32_t api);
  void look_at_runs(const Entry& entry);
  void settle_run(Run& run, std::string_view consumer, double error, double before);
  bool note_end(const Run& run, Finding& found) const;

  // provenance.cpp: where inputs come from
  void follow_inputs(Entry& entry);
  bool may_be_data(const Entry& entry, std::uint32_t item);
  bool is_tainted(const Entry& entry, std::uint32_t item) const;
  bool settle_between(std::uint32_t producer, const Entry& entry, double error, double before);
  Unseen unseen_input(const Entry& entry) const;

  // gradient_paths.cpp: gradients of one side alone
  std::uint32_t golden_named(std::string_view name);
  Alone backward_alone(std::uint32_t forward);
  static bool is_one_sided(Alone alone);
  void await_gradients(const Entry& entry, Finding found, const std::string& given);
  std::string paths_of_one_side(std::uint32_t forward);
  void show_cuts();
  void missing_backward(Entry& entry, double error, double before);

  // rank_judge.cpp: what rules of whole steps explain (step_rule.hpp)
  void ask_step_rules();
  bool is_explained(Entry& entry, std::uint32_t item);

  // evidence.cpp and gradient_evidence.cpp: the rules
  void structure(Entry& entry, double& scalar_error);
  void await_effect(const Entry& entry, Finding found);
  void show_effect(Entry& entry, std::uint32_t forward, double error, double before);
  void confirm(Finding found, double before);
  void sources(Entry& entry);
  void source(Entry& entry, std::uint32_t item);
  void parameter(Entry& entry, std::uint32_t item, std::uint64_t key);
  void outputs(Entry& entry);
  void compound_outputs(Entry& entry);
  void backward_pair(Entry& entry);
  void gradients_pair(Entry& entry);
  bool is_square(const Entry& entry) const;
  double amplification(const Entry& entry) const;
  std::vector<Replayed> replayed(const Entry& entry, double excess) const;
  double floor_of(double e_in) const;
  std::uint64_t data_place(const Entry& entry, std::uint32_t item) const;
  bool is_judged_gradient(std::uint32_t index, std::uint32_t partner) const;
  void know_data(const Entry& entry, std::uint32_t item);
  std::optional<double> data_error(const Entry& entry, std::uint32_t item) const;
  ParameterStep last_step(std::uint32_t item);
  void foresee_gradients();
  std::optional<double> gradient_error(std::uint64_t key) const;
  double accumulated(const Entry& entry, std::uint32_t item);
  double gradient_scale(const Entry& entry, std::uint32_t item);
  bool has_parameter_like(const Entry& entry, std::uint32_t golden_forward, const dump::Item& gradient,
                          double& input) const;
  std::optional<double> broadcast_scale(const Entry& entry, std::uint32_t golden_forward,
                                        const dump::Item& partner) const;
  double best_match(const Entry& entry, std::uint32_t item, double enough) const;
  void judge_output(Entry& entry, std::uint32_t item, double e, double b,
                    const std::vector<Replayed>& replays, double more = 0);
  std::string integers_without_sums(const Entry& entry) const;
  double share_of_few(std::uint32_t item, double n) const;
  double received(const Entry& entry, std::uint32_t item, double sums = 0) const;
  Noise noise_of(std::uint32_t item) const;
  void checksum(Entry& entry);
  void flip(Entry& entry, double error);
  bool checksums_differ(std::uint32_t item) const;
  bool input_checksums_differ(const Entry& entry) const;
  std::string_view producer_name(std::uint32_t target_item, std::uint32_t golden_item) const;
  double carried(std::uint32_t target_item, std::uint32_t golden_item);
  double hidden_of(std::uint32_t target_api) const;

  const dump::Item& item_of(std::uint32_t index) const { return target_.items[index]; }
  std::string_view target_name(std::uint32_t api) const { return target_.text(target_.apis[api].name); }
  std::string_view golden_name(std::uint32_t api) const { return golden_.text(golden_.apis[api].name); }
  double e_of(std::uint32_t item) const { return std::isnan(errors_.e[item]) ? 0 : errors_.e[item]; }

  const measuring::MeasuredRank& rank_;
  const DiagnosisOptions& options_;
  const std::vector<std::string>& framework_frames_;  // see dump::user_frame()
  SecondReading& reading_;
  const dump::ConstructTable* construct_;  // may be null
  std::optional<std::int64_t> step_;       // as the folders number them
  std::optional<std::int64_t> golden_step_;
  const dump::Side& target_;
  const dump::Side& golden_;
  const Alignment& alignment_;
  History& history_;
  ItemErrors errors_;
  OneRecorder target_only_;
  OneRecorder golden_only_;
  ContentKeys target_keys_;
  ContentKeys golden_keys_;
  RankDiagnosis out_;
  double threshold_;
  bool other_operations_;
  bool tensors_;
  ReplayMode replay_mode_;

  std::vector<bool> compound_;  // by entry under test
  std::unordered_map<std::uint32_t, std::uint32_t>
      deferred_;  // gradients of parameters: the backward ahead of them
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> gradients_behind_;  // by that backward
  std::vector<bool> compound_golden_;
  ContentMap target_flow_;  // items that put out a content
  ContentMap golden_flow_;
  ContentMap parameter_items_;                              // contents of modules' parameters: their items
  ContentMap judged_parameters_;                            // contents that were judged
  ContentMap gradient_items_;                               // gradients that backwards gave, by content
  std::unordered_map<std::uint32_t, double> alone_target_;  // carried errors of entries without a partner
  std::unordered_map<std::uint32_t, double> alone_golden_;
  std::unordered_map<std::uint32_t, std::uint32_t> run_of_target_;
  std::unordered_map<std::uint32_t, std::uint32_t> run_of_golden_;
  std::vector<std::optional<Finding>> step_findings_;           // not reported yet
  std::unordered_map<std::uint32_t, std::uint32_t> explained_;  // items: which of these
  std::vector<Finding> quiet_calls_;  // with another argument, and without effect on the output
  std::unordered_map<std::uint32_t, std::uint32_t> quiet_at_;  // they, and what gave them their inputs
  std::unordered_map<std::string, Repeated> repeated_;         // by the call and its argument
  std::vector<std::pair<Finding, double>> cuts_;  // gradients flow on one side alone; errors before
  std::unordered_set<std::uint32_t> cut_;         // entries where they do
  TextIndex golden_index_;
  std::size_t golden_indexed_ = 0;  // entries of the reference in it
  std::vector<Run> runs_;
  std::size_t first_open_ = 0;  // runs before it are settled or out of sight
  bool run_open_ = false;
  std::uint32_t golden_next_ = 0;
  std::uint32_t last_paired_ = kNone;
  std::uint32_t at_ = 0;                    // entry under test at hand
  std::uint64_t fault_order_ = UINT64_MAX;  // behind it errors may be propagated
  std::vector<bool> touched_;               // by entry under test: evidence, or takes something from it
  std::vector<bool> untouched_;             // by item under test: it comes from none of those
  std::vector<std::pair<std::uint64_t, double>> records_;  // excesses below evidence, with their orders

  double forward_ = 0;     // E
  double backward_ = 0;    // Eb
  double parameters_ = 0;  // largest error of a parameter in this step
  double updated_ = 0;     // largest that the update may have made without its statistics showing it
  double gradients_ = 0;   // largest error of a gradient, however small the gradient
  double rounded_ = 0;     // what statistics of half types that are rounded to them do not show
  double coarsest_ = 0;    // largest unit roundoff of what has differed so far
  bool trained_ = false;   // parameters had a part in something of this step
  bool any_evidence_ = false;
  bool any_certain_ = false;
  bool full_ = false;  // of findings: none is kept any more
  double before_ = 0;  // largest error ahead of the entry at hand
  double clean_ = 0;   // and ahead of the first evidence
  bool any_checksum_ = false;
  bool data_differs_ = false;  // and is evidence
  double flips_ = 0;           // largest error of a decision
  bool flipped_ = false;       // a discrete decision, so that shapes may follow it
  std::optional<Drift> drift_;
  UpdateStatistics updates_;
  StepRatios steps_;
  std::optional<Finding> first_updated_;    // place of the first parameter whose update is known
  std::optional<Finding> first_parameter_;  // the first that differs
  std::uint64_t parameters_wrong_ = 0;
  std::uint64_t parameters_judged_ = 0;
  double parameter_largest_ = 0;
  double before_first_parameter_ = 0;
};

}  // namespace msprobe::diagnosis
