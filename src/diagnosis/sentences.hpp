// SPDX-License-Identifier: Apache-2.0
// The sentences of the diagnosis: those of a finding, and the answer (docs/loss-differs.md, "The answer").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/finding.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// `2.1e-01`; `0`; `infinite`, where only one side is not finite.
std::string error_text(double error);

/// `is exactly 0, golden has the norm 3.0e-05` if one side alone is zero; else empty.
std::string zero_text(const dump::Side& target, const dump::Item& ours, const dump::Side& golden,
                      const dump::Item& theirs);
/// `differs by 2.1e-01`, `has NaN, golden none`, or both shapes where the numbers of elements differ.
std::string difference_text(const dump::Side& target, const dump::Item& ours, const dump::Side& golden,
                            const dump::Item& theirs, double error);

/// `NaN, golden none`, `infinities, golden none` and the reverse, where only one side is not finite; else
/// empty.
std::string non_finite_text(const dump::Side& target, const dump::Item& ours, const dump::Side& golden,
                            const dump::Item& theirs);

/// The next thing to do, by kind of finding.
std::string advice(const Finding& finding, bool tensors);

/// The beginning of a text about an input that no recorded entry made.
inline constexpr std::string_view kFromUnrecorded = "comes from unrecorded code and ";
/// The next thing to do about the output of unrecorded code, in a module or outside of all modules.
/// `trained`: it may itself be a parameter.
std::string made_unrecorded(std::string_view module, bool trained);

/// One line of the answer.
struct Line {
  bool heads = false;  // begins a finding, or says that no culprit was found
  std::string name;    // or a name from below
  std::string text;
  std::string confidence;  // of a finding that is evidence
};
/// The name of the answer begins with this where no culprit is found; the share that was compared follows.
inline constexpr std::string_view kNoCulprit = "no culprit";
/// The word for what a comparison of dumps counts.
inline constexpr std::string_view kTensors = "tensors";
/// The name of a line that says what is known of the finding above it.
inline constexpr std::string_view kWhy = "why";
/// The name of a line of code, as Finding::where has it.
inline constexpr std::string_view kWhere = "where";

std::vector<Line> answer(const Diagnosis& diagnosis);

/// Where a finding is, with the module: `blocks.2 > Tensor.add.16.forward, step 0`.
std::string headline_of(const Finding& finding);
/// The text of a finding, and how many more places show the same.
std::string sentence(const Finding& finding);
/// The answer where no culprit is named.
struct NoCulprit {
  std::string title;  // `no culprit`, `not clear`
  std::string why;
  std::string sentence() const { return title + ": " + why; }
};
/// The answer of a diagnosis without a culprit.
NoCulprit no_culprit(const Diagnosis& diagnosis);

/// The cell of an entry: excess and the sentence; empty for null.
std::string evidence_cell(const Finding* finding);

/// A finding as one JSON object on one line: kind, entry, golden_entry, place, step, rank, module, excess,
/// confidence, side, text, next, where, propagated, concerned, other_ranks. An infinite excess is null.
std::string to_json(const Finding& finding);

/// All findings in their order, then the notes. Without evidence, an object of kind `no_culprit` comes before
/// the hints.
std::vector<std::string> to_json(const Diagnosis& diagnosis);

}  // namespace msprobe::diagnosis
