// SPDX-License-Identifier: Apache-2.0
// The evidence of one rank in one step: each entry is judged by whether its error follows from what it
// received (docs/diagnosis.md, "Evidence").
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnosis/alignment.hpp"
#include "diagnosis/finding.hpp"
#include "diagnosis/measures.hpp"
#include "diagnosis/precision.hpp"
#include "dump/communication.hpp"
#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// An output that was computed again, in double precision, from each side's own inputs.
struct Replayed {
  std::uint32_t item = 0;  // of the side under test
  double target = 0;       // distance of what was recorded, relative to what was computed
  double golden = 0;
  double tolerance = 0;
};

/// What a step did to a parameter: its difference to the step before, of both sides.
struct Update {
  std::uint64_t n = 0;
  double e = 0;
  double gain = 1;
};

enum class ReplayMode : std::uint8_t { never, suspects, all };

/// What is known not to be a fault.
struct Noise {
  double error = 0;   // of the output, although nothing but rounding changed
  double growth = 0;  // how much larger it was than that of the inputs; 0: not known
  /// By how much a single element changed: errors up to that may be of this kind. 0: not known; infinite: a
  /// sign or a NaN.
  double element = 0;
};

struct RankPair {
  const dump::Side* target = nullptr;
  const dump::Side* golden = nullptr;
  const Alignment* alignment = nullptr;
  std::shared_ptr<const StatisticsPrecision> precision;
  const dump::ConstructTable* target_construct = nullptr;  // may be null
  std::string step;
  std::string rank;
  std::int64_t number = 0;  // of the rank
  bool late = false;        // not the first step of the runs: something was trained before it
  std::string unlike;       // what the two dumps do not have in common; empty: nothing is known
  ReplayMode replay_mode = ReplayMode::suspects;
  std::vector<std::string> framework_frames;  // see user_frame()
  std::set<Rule> without;                     // rules that say nothing, to see what each is worth
  bool stop_at_certain = false;               // entries behind the first certain evidence are left out

  // What else there is; any may be empty. Items and entries are numbers of the sides.
  /// From tensors; nothing where a pair has none, which then is measured by its statistics. Called by several
  /// threads at once, unless the rank may stop.
  std::function<std::optional<Measure>(std::uint32_t target_item, std::uint32_t golden_item)> tensors;
  /// The outputs that a statement can be made of.
  std::function<std::vector<Replayed>(std::uint32_t target_api, std::uint32_t golden_api)> replay;
  /// Of a parameter, since the step before.
  std::function<std::optional<Update>(std::uint32_t target_item, std::uint32_t golden_item)> update;
  /// Of an entry that only the reference has: what it lies in, and the line of the program that called it.
  std::function<std::string_view(std::string_view golden_entry)> golden_parent;
  std::function<std::string(std::string_view golden_entry)> golden_where;
  /// Of an output of the reference.
  std::function<Noise(std::uint32_t golden_item)> noise;
};

/// Max, Min, Mean and Norm of a parameter; NaN where one is not recorded.
struct ParameterTrace {
  std::array<double, 4> target;
  std::array<double, 4> golden;
};

/// Of a rank, through its steps in order.
struct History {
  double forward = 0;  // largest errors
  double backward = 0;
  double gradients = 0;  // however small the gradient
  double coarsest = 0;   // largest unit roundoff of a forward entry
  std::uint32_t steps = 0;
  bool evidence = false;                                 // or something bad that came in by communication
  bool certain = false;                                  // some of the evidence
  double clean = 0;                                      // the largest error ahead of it
  bool flipped = false;                                  // a discrete decision, by rounding
  std::shared_ptr<const StatisticsPrecision> precision;  // as the first step showed it
  std::unordered_map<std::uint64_t, float> data_errors;  // by the places where data came in
  // Of the step before, by name:
  std::unordered_map<std::uint64_t, ParameterTrace> parameters;  // entry and place
  std::unordered_map<std::uint64_t, float> gradient_errors;      // module and parameter
};

/// A call of communication, and how much worse it left what it took.
struct CommPlace {
  dump::Communication call;
  std::string entry;
  std::string golden_entry;
  std::string module;
  std::string where;
  std::uint32_t api = 0;
  double e_in = 0;  // infinite where nobody looked: it may explain anything
  double e_out = 0;
  double u = 0;
  bool arrived = false;  // its own inputs do not explain what came out
};

/// What is kept of a rank until all are judged together.
struct RankFindings {
  std::string step;
  std::string rank;
  std::int64_t number = 0;
  bool tensors = false;
  double threshold = 0;
  std::vector<Finding> findings;  // evidence before hints, each in order; not more than kMostFindings of both
  std::uint64_t evidence = 0;     // entries with evidence, kept or not
  std::vector<CommPlace> communication;
  bool drifted = false;            // parameters differ before the first step that was recorded
  bool apart = false;              // by more than training makes of rounding
  std::vector<std::string> notes;  // what holds of the whole: each is said once
  bool stopped = false;            // at certain evidence: it and what precedes it is all that was looked at
  std::uint64_t left_out = 0;      // entries behind that

  std::array<std::uint64_t, kOrigins> counts{};  // of origins
  std::uint64_t measured = 0;                    // tensors among them whose error is known
  std::uint64_t unread = 0;  // tensors that could not be read; to be filled in by who read them
  // Entries and tensors whose evidence is weaker, as something could not be read again; the same of it.
  std::uint64_t broken_off = 0;
  std::string first_broken_off;
  std::uint64_t agreeing = 0;  // paired entries ahead of the first evidence
  std::uint64_t rounded = 0;   // those of them that differ at all
  double largest_before = 0;   // the largest J among them
  double passed_on_largest = 0;
  std::string passed_on_entry;

  /// The entry nearest to evidence.
  double largest_j = 0;
  std::string largest_entry;
  /// The smallest error that would have been evidence, at the place where it is largest.
  double visible = 0;
  std::string visible_module;

  /// The finding of an entry under test, or null.
  const Finding* finding_of(std::uint32_t target_api) const;
};

struct RankDiagnosis : RankFindings {
  // Of each item under test:
  std::vector<std::uint32_t> golden_item;  // its partner, or kNone
  std::vector<float> error;                // e; NaN: not measured
  /// The largest e that follows from what came in and from rounding; more is evidence unless replay acquits.
  /// NaN: not judged by its size.
  std::vector<float> explained;
  std::vector<Origin> origin;
  std::uint32_t looked_at = 0;  // entries under test
};

inline constexpr std::size_t kMostFindings = 64;

RankDiagnosis diagnose_rank(const RankPair& pair, History& history);

}  // namespace msprobe::diagnosis
