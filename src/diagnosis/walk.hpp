// SPDX-License-Identifier: Apache-2.0
// The state that the rules of a step share while its entries are judged in the order of execution: the two
// sides, what was seen so far, and the evidence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnosis/dtype_setting.hpp"
#include "diagnosis/equivalent_modules.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/item_errors.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/part_updates.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/recorders.hpp"
#include "diagnosis/second_reading.hpp"
#include "diagnosis/split_batch.hpp"
#include "diagnosis/updates.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {

/// The entries whose outputs reach an entry, through any number of others.
struct Upstream {
  double error = 0;   // the largest error of any of them
  bool open = false;  // not all ways are recorded, and evidence was seen before: it may reach the entry

  void join(const Upstream& other) {
    error = std::max(error, other.error);
    open = open || other.open;
  }
};

/// An entry under test and its partner, while they are judged.
struct EntryPair {
  std::uint32_t target = 0;
  std::uint32_t golden = 0;
  dump::EntryName name;
  dump::Nature nature = dump::Nature::ordinary;
  bool compound = false;  // a module whose operations are recorded
  bool communication = false;
  bool optimizer = false;
  double u = 0;  // unit roundoff
  double e_in = 0;
  double b_in = 0;
  double spread = 0;  // how much the errors of its inputs, even of a few elements, change a norm
  double e_out = 0;
  double hidden = 0;    // what statistics do not show of what went in
  double worst_in = 0;  // as measured, for the texts
  Upstream upstream;
  double grown = 1;        // by how much an error of the inputs may grow
  bool touched = false;    // takes a tensor that follows from evidence
  bool noise = false;      // a call of an optimizer on a gradient that is nothing but noise
  bool tainted = false;    // takes an unrecorded tensor with an error that evidence may have caused
  bool rewritten = false;  // on another way to a result that both sides have
  std::optional<Finding> best;
};

/// The largest errors of the step so far.
struct LargestErrors {
  double forward = 0;
  double backward = 0;
  double parameters = 0;
  double updated = 0;    // that an update may have caused unseen by the statistics of parameters
  double gradients = 0;  // however small the gradient
  double rounded = 0;    // the part that statistics hide which are rounded to half types
  double coarsest = 0;   // largest unit roundoff of a tensor that differs
  double flips = 0;      // of decisions
  double noise = 0;      // of an optimizer's outputs from gradients that are nothing but noise
};

struct Walk {
  /// `past` already has the precision of the statistics.
  Walk(const measuring::MeasuredRank& measured, const DiagnosisOptions& asked,
       const std::vector<std::string>& frames, SecondReading& second, History& past,
       const MeasureEntry& measure_entry);

  const measuring::MeasuredRank& rank;
  const DiagnosisOptions& options;
  const std::vector<std::string>& framework_frames;  // see dump::user_frame()
  SecondReading& reading;
  const dump::ConstructTable* construct;  // may be null
  const dump::ConstructTable* golden_construct;
  std::optional<std::int64_t> step;  // as the folders number them
  std::optional<std::int64_t> golden_step;
  const dump::Side& target;
  const dump::Side& golden;
  const pairing::Alignment& alignment;
  History& history;
  ItemErrors errors;
  EquivalentModules equivalent_modules;
  OneRecorder target_only;
  OneRecorder golden_only;
  ContentKeys target_keys;
  ContentKeys golden_keys;
  double threshold;
  bool other_operations;  // the sides run different operations, as two frameworks do
  bool tensors;
  bool equal_inputs;           // the collector saw that the models of both sides have equal inputs
  std::vector<bool> compound;  // by entry: see EntryPair
  std::vector<bool> compound_golden;
  std::unordered_map<std::uint32_t, std::uint32_t>
      deferred;  // gradients, and entries of a second pass: the backward after which they are judged
  ContentMap parameter_items;  // contents of modules' parameters: their items
  ContentMap golden_parameter_items;
  ContentMap golden_gradient_items;  // contents of gradients of parameters: their items

  std::uint32_t at = 0;    // entry under test at hand
  double before = 0;       // largest error before it
  ContentMap target_flow;  // by content: the item that is the output with it
  ContentMap golden_flow;
  std::uint32_t golden_next = 0;  // the first entry of golden that golden_flow does not have
  std::uint32_t last_paired = pairing::kNone;
  ContentMap gradient_items;  // contents of gradients that backwards gave: their items
  std::vector<bool> touched;  // by entry under test: has evidence, or takes a tensor that follows from it
  std::vector<bool> noisy;    // by entry under test: see EntryPair
  std::unordered_set<std::uint32_t> noise_alone;      // parameters under test that updates by noise made
  std::vector<bool> untouched;                        // by item under test: it follows from no touched entry
  std::vector<bool> unexplained;                      // by item under test
  std::vector<Upstream> reached;                      // by entry under test: its upstream and itself
  std::vector<std::vector<std::uint32_t>> consumers;  // by entry under test: calls that take its outputs
  LargestErrors largest;
  bool trained = false;  // parameters took part in an output of this step
  bool flipped = false;  // a discrete decision, so that shapes may follow it
  std::optional<Drift> drift;
  std::optional<DtypeSetting> dtype_setting;
  std::optional<SplitBatch> split_batch;
  std::optional<PartUpdates> part_updates;
  std::uint64_t updates = 0;            // how often an optimizer began its step so far
  std::uint64_t others_parameters = 0;  // calls that take another parameter than their partner; not compared
  std::uint64_t rewritten = 0;          // values on different ways to the same result; not compared
  std::string first_rewritten;          // its entry

  RankDiagnosis out;
  std::uint64_t fault_order = UINT64_MAX;  // after it, errors may be propagated
  double clean = 0;                        // largest error before the first evidence
  bool any_evidence = false;
  bool any_certain = false;
  bool full = false;                                      // findings are full: no more is kept
  std::vector<std::pair<std::uint64_t, double>> records;  // excesses below evidence, with their orders

  const dump::Item& item_of(std::uint32_t index) const { return target.items[index]; }
  std::string_view target_name(std::uint32_t api) const { return target.text(target.apis[api].name); }
  std::string_view golden_name(std::uint32_t api) const { return golden.text(golden.apis[api].name); }
  /// `error 2.1e-01` of an entry's items, or how they differ where that is no number: by shape, NaN,
  /// infinities.
  std::string error_at(std::uint32_t target_api, double error) const;
  double e_of(std::uint32_t item) const { return std::isnan(errors.e[item]) ? 0 : errors.e[item]; }
  /// The order of an entry under test, as in Finding::order.
  std::uint64_t order_of(std::uint32_t api) const;
  /// Whether the entry computes a part of a batch that the sides split differently.
  bool is_part(const EntryPair& entry) const;
  double forward_error() const;
  /// The largest error that was seen and explained.
  double any_error() const;
  double floor_of(const EntryPair& entry) const;
  /// The upstream of a tensor of unknown origin: all entries so far may reach it.
  Upstream anything_seen() const;
  /// Masks and counts of different calls often have the same statistics: these do not identify such a tensor.
  bool is_of_whole_numbers(std::uint32_t item) const;
  /// Its statistics equal golden's and would show an error.
  bool is_clean(std::uint32_t item) const;
  double hidden_of(std::uint32_t target_api) const;
  /// The error that right calls may have made which a recording was not asked for; 0 if it was asked for all.
  double unasked_error() const;
  bool checksums_differ(std::uint32_t item) const;
  bool input_checksums_differ(const EntryPair& entry) const;
  void measure_inputs(EntryPair& entry) const;
  /// Whether a later entry reads the output of a view. Other views, calls that write into it, and
  /// communication do not count.
  bool is_read(const EntryPair& view) const;

  /// The module around an entry; if one side alone has the entry, the other number is kNone.
  std::string module_around(std::uint32_t target_api, std::uint32_t golden_api) const;
  void name_places(Finding& finding, std::uint32_t target_api, std::uint32_t golden_api) const;

  /// Whether the text of a finding with this excess will be shown. Most entries have no such finding, and
  /// only a few findings are kept.
  bool is_shown(double excess) const { return excess >= hint() && !full; }
  /// An error with at least this excess is reported as a hint.
  double hint() const { return threshold / kMargin; }
  /// Whether an excess is too small even for a hint; only the largest of these is remembered.
  bool is_too_small(const EntryPair& entry, Rule rule, double excess);
  Finding finding(const EntryPair& entry, Kind kind, Rule rule, double excess) const;
  void offer(EntryPair& entry, Finding finding);
  void keep(Finding finding, double before);
  void confirm(Finding finding, double before);
  void flip(EntryPair& entry, double error);
  /// Whether the entry is inside a module that hands on the same tensors on both sides, by different
  /// operations, or hands gradients to an optimizer that takes the same.
  bool is_made_good(const EntryPair& entry);
  /// Whether an entry takes another tensor than its partner: they are then two calls, not one with another
  /// argument.
  bool takes_other_inputs(std::uint32_t target_api);
  /// Turns evidence into a hint inside a module that hands on the same tensors on both sides.
  void make_good(Finding& finding, std::uint32_t target_api, std::string_view golden_entry, double ahead);
  /// Leaves out the entry's values whose error is above the limit, because they are on a different way to the
  /// same result.
  void leave_out(std::uint32_t target_api, double limit);
  void leave_out_item(std::uint32_t item);

 private:
  void remember(std::uint32_t api, double excess);
};

/// Short names for what a rule that judges entry by entry needs most.
class WalkRule {
 protected:
  explicit WalkRule(Walk& walk)
      : walk_(walk),
        target_(walk.target),
        golden_(walk.golden),
        alignment_(walk.alignment),
        history_(walk.history),
        errors_(walk.errors),
        largest_(walk.largest) {}

  Walk& walk_;
  const dump::Side& target_;
  const dump::Side& golden_;
  const pairing::Alignment& alignment_;
  History& history_;
  ItemErrors& errors_;
  LargestErrors& largest_;
};

}  // namespace msprobe::diagnosis
