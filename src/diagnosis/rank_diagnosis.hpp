// SPDX-License-Identifier: Apache-2.0
// The evidence of one rank in one step: each entry is judged by whether its error follows from what it
// received (docs/how-it-decides.md, "Evidence").
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnosis/finding.hpp"
#include "diagnosis/noise_floor.hpp"
#include "dump/communication.hpp"
#include "measuring/measured_rank.hpp"
#include "support/coverage.hpp"

namespace msprobe::diagnosis {

enum class ReplayMode : std::uint8_t { never, suspects, all };

struct DiagnosisOptions {
  bool wanted = true;
  ReplayMode replay = ReplayMode::suspects;
  std::set<Rule> without;       // rules that are turned off, to measure what each contributes
  std::string noise_floor;      // a third dump, or results of free_benchmark; empty: not given
  bool first = false;           // stop at the first certain evidence and leave out the later entries
  bool two_code_bases = false;  // as are_two_code_bases() finds
};

/// Max, Min, Mean and Norm of a parameter; NaN where one is not recorded.
struct ParameterTrace {
  std::array<double, 4> target;
  std::array<double, 4> golden;
};

/// The gradient of a parameter; means are NaN where they are not recorded.
struct GradientTrace {
  float error = 0;
  double target_mean = NAN;
  double golden_mean = NAN;
  double target_taken = NAN;  // means of what the optimizers take, after reductions and clipping
  double golden_taken = NAN;
};
/// The key of a gradient: the module and the parameter, which have the same names in every step.
std::uint64_t gradient_key(std::string_view module, std::string_view item_name);

/// The findings and errors of a rank in its steps so far.
struct History {
  double forward = 0;  // largest errors
  double backward = 0;
  double gradients = 0;  // however small the gradient
  double noise = 0;      // of updates by gradients that are nothing but noise
  double coarsest = 0;   // largest unit roundoff of a forward entry
  std::uint32_t steps = 0;
  bool ends = false;      // no step follows, so that data for the next one are not kept
  bool evidence = false;  // or an error that came in by communication
  bool certain = false;   // some of the evidence
  double clean = 0;       // the largest error before it
  bool flipped = false;   // a discrete decision, by rounding
  std::shared_ptr<const measuring::StatisticsPrecision>
      precision;                                         // the precision that the first step showed
  std::unordered_map<std::uint64_t, float> data_errors;  // by the places where data came in
  /// The root mean square of the errors that explain what the last call left in a running statistic, by name.
  std::unordered_map<std::uint64_t, double> running;
  // From the step before: differences of the code that had no effect there, by the contents that follow.
  std::unordered_map<std::uint64_t, std::shared_ptr<const Finding>> suspects;
  std::unordered_set<std::uint64_t> noise_contents;  // from the step before: contents that come from noise
  std::unordered_set<std::string> rewritten;  // names of items at the ends of other ways to the same result
  // From the step before, by name:
  std::unordered_map<std::uint64_t, ParameterTrace> parameters;      // entry and place
  std::unordered_map<std::uint64_t, GradientTrace> gradient_traces;  // by gradient_key()
};

/// A call of communication, and how much its outputs are worse than its inputs.
struct CommPlace {
  dump::Communication call;
  // The place of the call, if its outputs are worse:
  std::string entry;
  std::string golden_entry;
  std::string module;
  std::string where;
  std::uint32_t api = 0;
  double e_in = 0;  // infinite if the entry was not judged: it may explain anything
  double e_out = 0;
  double u = 0;
  bool arrived = false;  // its own inputs do not explain what came out
  bool follows = false;  // earlier evidence of its rank may have changed what went in
};

/// Where two code bases compute the same.
struct MeetingPoint {
  std::string entry;
  std::string golden_entry;
  double error = 0;
};

/// A step that one side did not finish.
struct EarlyEnd {
  std::string whose;  // "this run", "golden"; empty: both sides finished the step
  std::string where;  // `in step1, before its backward, after Functional.linear.3.forward: ...`
  std::string text() const { return whose + " ends early " + where; }
};

/// The data that is kept of a rank until all ranks are judged together.
struct RankFindings {
  std::string step;
  std::string rank;
  std::int64_t number = 0;
  bool tensors = false;
  double threshold = 0;
  std::vector<Finding> findings;  // evidence before hints, each in order; not more than kMostFindings of both
  std::uint64_t evidence = 0;     // entries with evidence, kept or not
  std::vector<CommPlace> communication;
  /// The gradients that one run alone changes between backward and optimizer: the parameters by name, and the
  /// norms that the optimizers of both runs take.
  std::vector<std::pair<std::string, std::pair<double, double>>> changed_gradients;
  std::pair<bool, bool> one_factor;  // whether each run changes all of them by one
  bool drifted = false;              // parameters differ before the first step that was recorded
  bool apart = false;                // they differ by more than rounding grows to in training
  std::vector<std::string> notes;    // remarks on the whole rank, each once
  EarlyEnd early_end;                // one of the notes
  /// For two code bases: all places where they agree, in the order of the target, and a sentence about them.
  std::vector<MeetingPoint> meeting_points;
  std::string agreement;
  bool stopped = false;        // stopped at certain evidence; later entries were not looked at
  std::uint64_t left_out = 0;  // how many entries that are

  std::array<std::uint64_t, kOrigins> counts{};  // by origin
  Coverage coverage;                             // of the tensors of both sides
  std::uint64_t unread = 0;  // tensors that could not be read; filled in by the code that read them
  // Entries and tensors with weaker evidence, since something could not be read again; and the first of them.
  std::uint64_t broken_off = 0;
  std::string first_broken_off;
  std::uint64_t agreeing = 0;  // paired entries before the first evidence
  std::uint64_t rounded = 0;   // how many of these differ at all
  double largest_before = 0;   // the largest excess among them
  double propagated_largest = 0;
  std::string propagated_entry;

  /// The entry nearest to evidence.
  double largest_excess = 0;
  std::string largest_entry;
  /// The limit of detection: at the least sensitive place, the smallest error that would have been evidence.
  double visible = 0;
  std::string visible_module;

  /// The finding of an entry under test, or null.
  const Finding* finding_of(std::uint32_t target_api) const;
};

struct RankDiagnosis : RankFindings {
  // For each item of the target:
  std::vector<std::uint32_t> golden_item;  // its partner, or kNone
  std::vector<float> error;                // e; NaN: not measured
  /// The largest e that follows from what came in and from rounding; more is evidence unless replay rules it
  /// out. NaN: not judged by its size.
  std::vector<float> explained;
  std::vector<Origin> origin;
  std::uint32_t looked_at = 0;  // entries under test
};

inline constexpr std::size_t kMostFindings = 64;

/// Measures the tensors of an entry under test, if that was not done yet.
using MeasureEntry = std::function<void(std::uint32_t target_api)>;

/// The steps of a rank, in order.
struct RankHistory {
  History history;
  std::shared_ptr<const measuring::MeasuredRank>
      before;  // the step before, where its tensors are needed again
};

/// Where the errors of a rank come from. The rank has an alignment and a precision, and is measured; or, with
/// `options.first`, `measure_entry` does that entry by entry. `noise` may be null.
RankDiagnosis diagnose(const measuring::MeasuredRank& rank, const DiagnosisOptions& options,
                       const std::vector<std::string>& framework_frames, RankHistory& past,
                       const diagnosis::NoiseFloor* noise = nullptr, const MeasureEntry& measure_entry = {});

}  // namespace msprobe::diagnosis
