// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/call_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnosis/sentences.hpp"
#include "diagnosis/structure.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::State;

constexpr std::size_t kMostRepeated = 4096;

}  // namespace

void CallRule::examine(EntryPair& entry) {
  const double scalar_error = judge(entry);
  entry.e_in = std::max(entry.e_in, scalar_error);
}

/// The largest error of a number that may be rounding.
double CallRule::judge(EntryPair& entry) {
  const double rounding = std::min(
      kMostScalarRounding,
      walk_.threshold * (std::max({walk_.forward_error(), walk_.largest.backward, walk_.history.backward}) +
                         kUnrecordedRoundings * kSingleRoundoff));
  const CalledOtherwise called = called_otherwise(walk_.target, entry.target, walk_.golden, entry.golden,
                                                  walk_.errors.golden_item, rounding);
  const auto call_of = [&](const StructuralDifference& difference) {
    return fmt::format("{}\n{}\n{}\n{}", entry.name.operation(), difference.place, difference.target,
                       difference.golden);
  };
  // What one call was given otherwise others are as well: the updates of all parameters.
  const auto& known = called.first ? called.first : called.excused;
  const auto again =
      known && known->kind == Kind::argument ? repeated_.find(call_of(*known)) : repeated_.end();
  if (!called.first && again == repeated_.end()) return called.scalar_error;
  const StructuralDifference& difference = *known;
  double e_out = 0;           // of whole numbers as well
  std::string other_outputs;  // how they differ where no error is known
  for (const std::uint32_t i : walk_.target.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::output || walk_.errors.golden_item[i] == kNone) continue;
    e_out = std::max(e_out, walk_.e_of(i));
    const std::string_view dtype = walk_.target.text(walk_.item_of(i).dtype);
    const std::string_view golden_dtype =
        walk_.golden.text(walk_.golden.items[walk_.errors.golden_item[i]].dtype);
    if (other_outputs.empty() && walk_.checksums_differ(i) && entry.e_in == 0 &&
        !walk_.input_checksums_differ(entry))
      other_outputs = fmt::format("the checksum of {} differs", place_text(walk_.target, walk_.item_of(i)));
    if (difference.kind == Kind::argument && !same_dtype(dtype, golden_dtype))
      other_outputs =
          fmt::format("{} is {}, golden {}", place_text(walk_.target, walk_.item_of(i)), dtype, golden_dtype);
  }
  const bool effect = e_out > kEffect * entry.e_in + entry.u || !other_outputs.empty();
  // Rounding, or how far the runs have drifted apart, may hide what another setting does.
  // So may statistics that are rounded to half types; truths are about how rather than what, as `inplace` is.
  const double shown_from = walk_.hidden_of(entry.target);
  const bool truth = difference.target == "True" || difference.target == "False";
  const bool below = e_out == 0 && !truth && entry.u > kSingleRoundoff && shown_from >= entry.u;
  const bool hidden = !effect && difference.kind == Kind::argument && difference.setting &&
                      (e_out > 0 || below) && !walk_.flipped && entry.nature != Nature::random;
  const bool input_grad = difference.kind == Kind::requires_grad && difference.item != kNone &&
                          walk_.item_of(difference.item).state != State::output;
  // A shape or dtype that was handed on is no news.
  const bool by_decision =
      difference.kind == Kind::shape && (walk_.flipped || entry.nature == Nature::discrete);
  const bool handed_on = (entry.touched && difference.kind != Kind::argument) || by_decision;
  Finding found = walk_.finding(entry, difference.kind, Rule::structure, kInfinite);
  found.item = difference.item;
  found.place = difference.place;
  if (effect || difference.kind == Kind::dtype || difference.kind == Kind::shape) {
    found.confidence = handed_on ? Confidence::hint : Confidence::certain;
    if (by_decision) walk_.flip(entry, 1);
  } else if (hidden) {
    found.confidence = Confidence::likely;
  } else {
    found.confidence = input_grad && !entry.touched && walk_.target_name(entry.target).starts_with("Module.")
                           ? Confidence::likely
                           : Confidence::hint;
  }
  const std::string what = difference.kind == Kind::argument ? "argument " + difference.place
                           : difference.kind == Kind::dtype  ? "dtype of " + difference.place
                           : difference.kind == Kind::shape  ? "shape of " + difference.place
                                                             : "requires_grad of " + difference.place;
  const std::string given = fmt::format("{} is {}, golden {}", what, difference.target, difference.golden);
  const auto shown = [&]() -> std::string {
    const std::string errors =
        fmt::format("output {}, inputs {}", error_text(e_out), error_text(entry.worst_in));
    if (!other_outputs.empty()) return other_outputs;
    if (effect)
      return fmt::format("output error {} from inputs {}", error_text(e_out), error_text(entry.worst_in));
    if (hidden && below)
      return fmt::format("its effect is below the resolution of the recorded statistics, {}",
                         error_text(shown_from));
    if (hidden) return "its effect is hidden by the errors there: " + errors;
    return e_out == 0 ? "no effect on the output" : "no effect beyond the errors there: " + errors;
  };
  found.text = given + "; " + shown();
  found.side = "the code differs, not a kernel";
  if (!effect && !hidden && difference.kind == Kind::argument) await_effect(entry, found);
  if (difference.kind == Kind::requires_grad && !found.is_evidence()) paths_.await(entry, found, given);
  if (difference.kind == Kind::argument && found.is_evidence()) {
    if (again != repeated_.end()) {
      ++again->second.times;
      found.joined = true;
    } else if (repeated_.size() < kMostRepeated) {
      repeated_.emplace(call_of(difference), Repeated{entry.target, 0});
    }
  }
  walk_.offer(entry, std::move(found));
  return called.scalar_error;
}

/// The output of a call with another argument may hide its effect, which its gradients show.
void CallRule::await_effect(const EntryPair& entry, Finding found) {
  if (quiet_calls_.size() >= kMostFindings || walk_.options.without.contains(Rule::structure)) return;
  walk_.name_places(found, entry.target, entry.golden);
  const auto number = static_cast<std::uint32_t>(quiet_calls_.size());
  quiet_calls_.push_back(std::move(found));
  quiet_at_.emplace(entry.target, number);
  for (const std::uint32_t i : walk_.target.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    if (from != ContentMap::kUnknown) quiet_at_.emplace(walk_.target.items[from].api, number);
  }
}

/// A gradient that is wrong at or next to such a call is its effect.
void CallRule::show_effect(EntryPair& entry, std::uint32_t forward, double error, double before) {
  const auto at = quiet_at_.find(forward);
  if (at == quiet_at_.end() || quiet_calls_[at->second].entry.empty()) return;
  Finding& found = quiet_calls_[at->second];
  entry.touched = true;
  found.text += fmt::format(", but its gradients differ: error {} at {}, {} before", error_text(error),
                            walk_.target_name(entry.target), error_text(before));
  walk_.confirm(std::exchange(found, {}), before);
}

void CallRule::count_repeated(Finding& found) const {
  if (found.kind != Kind::argument) return;
  for (const auto& [call, repeated] : repeated_) {
    if (found.target_api != repeated.first) continue;
    found.repeated = repeated.times;
    found.concerned += repeated.times;
  }
}

}  // namespace msprobe::diagnosis
