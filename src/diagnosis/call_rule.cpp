// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/call_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "diagnosis/amplification.hpp"
#include "diagnosis/argument_names.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "pairing/operations.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Nature;
using dump::State;
using measuring::kSingleRoundoff;
using measuring::unit_roundoff;
using pairing::kNone;
using pairing::place_text;

constexpr std::size_t kMostRepeated = 4096;
/// How many calls after exchanged operands may show their effect.
constexpr unsigned kBehindExchanged = 8;

bool is_truth(const StructuralDifference& difference) {
  return difference.target == "True" || difference.target == "False";
}

}  // namespace

void CallRule::examine(EntryPair& entry) {
  const double scalar_error = judge(entry);
  entry.e_in = std::max(entry.e_in, scalar_error);
}

/// The largest error of a number that may be rounding.
double CallRule::judge(EntryPair& entry) {
  const double rounding = std::min(
      kNoisy, walk_.threshold * (std::max({walk_.forward_error(), largest_.backward, history_.backward}) +
                                 kFew * kSingleRoundoff));
  const CalledOtherwise called =
      called_otherwise(target_, entry.target, golden_, entry.golden, errors_.golden_item, rounding,
                       walk_.dtype_setting ? &*walk_.dtype_setting : nullptr, errors_.scale_at(entry.target));
  const auto call_of = [&](const StructuralDifference& difference) {
    return fmt::format("{}\n{}\n{}\n{}", entry.name.operation(), difference.place, difference.target,
                       difference.golden);
  };
  // A difference in one call often appears in many, for example in the updates of all parameters.
  const auto& known = called.first ? called.first : called.excused;
  const auto again =
      known && known->kind == Kind::argument ? repeated_.find(call_of(*known)) : repeated_.end();
  if (!called.first && again == repeated_.end()) return called.scalar_error;
  const StructuralDifference& difference = *known;
  double e_out = 0;  // of whole numbers as well
  bool compared = false;
  std::string other_outputs;  // how the outputs differ where no error is known
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::output || errors_.golden_item[i] == kNone) continue;
    e_out = std::max(e_out, walk_.e_of(i));
    compared = compared || !walk_.item_of(i).is_tensor || !std::isnan(errors_.e[i]);
    const std::string_view dtype = target_.text(walk_.item_of(i).dtype);
    const std::string_view golden_dtype = golden_.text(golden_.items[errors_.golden_item[i]].dtype);
    if (other_outputs.empty() && walk_.checksums_differ(i) && entry.e_in == 0 &&
        !walk_.input_checksums_differ(entry))
      other_outputs = fmt::format("the checksum of {} differs", place_text(target_, walk_.item_of(i)));
    const bool setting = walk_.dtype_setting && walk_.dtype_setting->is(dtype, golden_dtype);
    const bool both = walk_.item_of(i).is_tensor && golden_.items[errors_.golden_item[i]].is_tensor;
    if (difference.kind == Kind::argument && both && !measuring::same_dtype(dtype, golden_dtype) && !setting)
      other_outputs =
          fmt::format("{} is {}, golden {}", place_text(target_, walk_.item_of(i)), dtype, golden_dtype);
  }
  const bool effect = has_effect(entry, difference, e_out) || !other_outputs.empty();
  // Another form of the same weights, as one that is folded, has no effect.
  if (!effect && !difference.parameter.empty()) return called.scalar_error;
  // The effect of another setting may be hidden by rounding, by the drift between the runs, or by statistics
  // that are rounded to half types. A truth value such as `inplace` says how something is computed rather
  // than what.
  const double shown_from = walk_.hidden_of(entry.target);
  const bool truth = is_truth(difference);
  const bool casts = difference.kind == Kind::dtype &&
                     is_half(std::max(unit_roundoff(difference.target), unit_roundoff(difference.golden)));
  const bool below = e_out == 0 && !truth && entry.u > kSingleRoundoff && shown_from >= entry.u;
  const double kernel =
      std::max(kFew * entry.u,
               kRightKernel);  // the error of another kernel, which a truth value may choose
  const bool hides = (casts || (difference.kind == Kind::argument && difference.setting)) &&
                     (e_out > (truth ? kernel : 0) || below);
  const bool hidden =
      !effect && hides && !entry.rewritten && !walk_.flipped && entry.nature != Nature::random;
  // The updates of this optimizer are not recorded.
  const bool elsewhere = !compared && entry.rewritten;  // compared where both runs meet again
  const bool unseen = !compared && !elsewhere && other_outputs.empty() && difference.kind == Kind::argument;
  const bool setting_of_step = unseen && entry.optimizer && difference.setting && !truth;
  const bool input_grad = difference.kind == Kind::requires_grad && difference.item != kNone &&
                          walk_.item_of(difference.item).state != State::output;
  // A shape or dtype that only follows from an earlier difference is not evidence again.
  // Rounding flips a decision only where there is rounding; it then changes how much the decision returns.
  const bool decides = entry.nature == Nature::discrete && difference.item != kNone &&
                       walk_.item_of(difference.item).state == State::output && walk_.any_error() > 0;
  const bool by_decision = difference.kind == Kind::shape && (walk_.flipped || decides);
  const bool rearranged = difference.kind == Kind::shape && rearranged_ahead(entry) != nullptr;
  if (difference.kind == Kind::shape && walk_.any_evidence) entry.touched = true;
  const bool retyped = is_finer_by_other_calls(entry, difference, e_out);
  const bool handed_on =
      (entry.touched && difference.kind != Kind::argument) || by_decision || rearranged || retyped;
  Finding found = walk_.finding(entry, difference.kind, Rule::structure, measuring::kInfinite);
  found.item = difference.item;
  found.place = difference.place;
  if (by_decision) walk_.flip(entry, 1);
  if (effect) {
    found.confidence = handed_on ? Confidence::hint : Confidence::certain;
  } else if (hidden || setting_of_step) {
    found.confidence = handed_on ? Confidence::hint : Confidence::likely;
  } else {
    found.confidence = input_grad && !entry.touched && walk_.target_name(entry.target).starts_with("Module.")
                           ? Confidence::likely
                           : Confidence::hint;
  }
  const std::string what =
      difference.kind == Kind::argument
          ? "argument " + argument_text(target_, walk_.target_name(entry.target), difference.place)
      : difference.kind == Kind::dtype ? "dtype of " + difference.place
      : difference.kind == Kind::shape ? "shape of " + difference.place
                                       : "requires_grad of " + difference.place;
  const std::string given =
      difference.parameter.empty()
          ? fmt::format("{} is {}, golden {}", what, difference.target, difference.golden)
          : fmt::format("{} has the parameter {}, {} has not",
                        difference.item == kNone ? "golden" : "this run", difference.parameter,
                        difference.item == kNone ? "this run" : "golden");
  if (!difference.parameter.empty()) found.next = "compare how the module is made on both sides";
  const auto shown = [&]() -> std::string {
    const std::string errors =
        fmt::format("output {}, inputs {}", error_text(e_out), error_text(entry.worst_in));
    if (!other_outputs.empty()) return other_outputs;
    if (effect && e_out <= kMargin * entry.e_in + entry.u)
      return fmt::format("the errors there are output {}, inputs {}, those before it at most {}",
                         error_text(e_out), error_text(entry.worst_in), error_text(walk_.forward_error()));
    const bool said = difference.kind == Kind::shape && std::isinf(e_out);
    if (effect && said) return fmt::format("its inputs differ by {}", error_text(entry.worst_in));
    if (effect && std::isinf(e_out))
      return fmt::format("{}; its inputs differ by {}", walk_.error_at(entry.target, e_out),
                         error_text(entry.worst_in));
    if (effect)
      return fmt::format("output error {} from inputs {}", error_text(e_out), error_text(entry.worst_in));
    if (unseen) return "what it computes is not recorded";
    if (elsewhere) return "both runs make the same result in another way";
    if (hidden && below)
      return fmt::format("its effect is below the resolution of the recorded statistics, {}",
                         error_text(shown_from));
    if (hidden && entry.worst_in == 0) return "its effect is no larger than rounding: " + errors;
    if (hidden) return "its effect is hidden by the errors there: " + errors;
    return e_out == 0 ? "no effect on the output" : "no effect beyond the errors there: " + errors;
  };
  found.text = given + "; " + shown();
  if (retyped)
    found.text += "; other calls make it in this run, and the rounding of golden's type explains the errors";
  if (difference.kind == Kind::shape && are_exchanged(entry))
    found.text = "its operands are exchanged: " + found.text;
  found.side = "the code differs, not a kernel";
  if (!effect && !hidden && !retyped && difference.kind != Kind::requires_grad) await_effect(entry, found);
  if (difference.kind == Kind::requires_grad && !found.is_evidence()) paths_.await(entry, found, given);
  if (difference.kind == Kind::dtype && found.is_evidence() && !entry.touched &&
      is_cast_ahead(entry, difference.item) &&
      runs_.settle_between(walk_.last_paired == kNone ? 0 : walk_.last_paired, entry,
                           walk_.e_of(difference.item), walk_.forward_error(), given))
    found.downstream = entry.touched = true;
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

/// Whether the output error is larger than the input errors explain. A cast shows in the tensor that it made:
/// by the roundoff of the finer type, and for an input compared with the errors before it.
bool CallRule::has_effect(const EntryPair& entry, const StructuralDifference& difference,
                          double e_out) const {
  // Another layout, or another way to the same result, adds up in another order. A truth value, or whole
  // numbers in place of other types, may choose another kernel.
  const bool truth = is_truth(difference);
  const bool whole = difference.kind == Kind::dtype &&
                     (unit_roundoff(difference.target) == 0) != (unit_roundoff(difference.golden) == 0);
  const bool other_order = difference.kind == Kind::shape || entry.rewritten || !difference.parameter.empty();
  const double roundings = other_order || truth || whole ? kFew : 1;
  const double kernel = truth || !difference.parameter.empty() ? kRightKernel : 0;
  // Whether a gradient is kept changes no value: an error there counts as one that the call introduces.
  const double margin =
      (difference.kind == Kind::requires_grad ? walk_.threshold : kMargin) *
      (entry.nature == Nature::periodic ? amplification(golden_, entry.golden, entry.nature) : 1);
  if (e_out > margin * entry.e_in + std::max(roundings * entry.u, kernel)) return true;
  if (difference.kind != Kind::dtype || difference.item == kNone) return false;
  const double finer = std::min(unit_roundoff(difference.target), unit_roundoff(difference.golden));
  if (finer == 0) return false;
  const double u = std::max(finer, kSingleRoundoff);
  if (walk_.item_of(difference.item).state == State::output) return e_out > kMargin * entry.e_in + u;
  return walk_.e_of(difference.item) > kMargin * walk_.forward_error() + u;
}

/// Whether an input has a finer type than golden's because the two sides make it by other calls, as a product
/// and a sum do under automatic casting that are a convolution in golden, and no error exceeds the roundings
/// of the coarser type. A coarser type loses what golden has.
bool CallRule::is_finer_by_other_calls(const EntryPair& entry, const StructuralDifference& difference,
                                       double e_out) {
  const std::uint32_t item = difference.item;
  const double u = unit_roundoff(difference.golden);
  const double finer = unit_roundoff(difference.target);
  if (difference.kind != Kind::dtype || finer == 0 || finer >= u || item == kNone ||
      walk_.item_of(item).state != State::input || errors_.golden_item[item] == kNone)
    return false;
  const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(item));
  const std::uint32_t golden_from = walk_.golden_flow.find(walk_.golden_keys.of(errors_.golden_item[item]));
  std::optional<double> before;
  const auto look_at = [&](const OneSidedRuns::Run* run) {
    if (run != nullptr && !run->target.empty() && !run->golden.empty())
      before = std::max(before.value_or(0), run->error);
  };
  if (from != kNone) {
    look_at(runs_.run_of_target(target_.items[from].api));
    if (const auto known = retyped_.find(target_.items[from].api); known != retyped_.end())
      before = std::max(before.value_or(0), known->second);
  }
  if (golden_from != kNone) look_at(runs_.run_of_golden(golden_.items[golden_from].api));
  if (!before) return false;
  const double taken = kMargin * *before + kFew * u;
  if (walk_.e_of(item) > taken || e_out > kMargin * taken) return false;
  // A norm averages the roundings of its elements.
  if (static_cast<double>(measuring::elements_of(target_.text(walk_.item_of(item).shape))) >= kFar &&
      errors_.b[item] > kMargin * *before + u)
    return false;
  retyped_.emplace(entry.target, *before);
  return true;
}

/// Whether unrecorded code made the input that differs in its dtype. Then other calls just before this entry
/// may have made it.
bool CallRule::is_cast_ahead(const EntryPair& entry, std::uint32_t item) const {
  return item != kNone && target_.items[item].api == entry.target &&
         walk_.item_of(item).state == State::input &&
         walk_.target_flow.find(walk_.target_keys.of(item)) == ContentMap::kUnknown;
}

/// Keeps a call with another argument whose output shows no effect, since its gradients may show one.
void CallRule::await_effect(const EntryPair& entry, Finding found) {
  if (quiet_calls_.size() >= kMostFindings || walk_.options.without.contains(Rule::structure)) return;
  walk_.name_places(found, entry.target, entry.golden);
  const auto number = static_cast<std::uint32_t>(quiet_calls_.size());
  if (found.kind == Kind::shape) rearranged_[entry.target] = {number, 0};
  if (found.kind == Kind::shape && are_exchanged(entry))
    exchanged_ = Exchanged{number, found.module, kBehindExchanged};
  quiet_calls_.push_back(std::move(found));
  quiet_at_.emplace(entry.target, number);
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    if (from != ContentMap::kUnknown) quiet_at_.emplace(target_.items[from].api, number);
  }
}

/// A gradient that is wrong at or next to such a call is its effect. `onset`: the error that rounding to half
/// types may cause in gradients there. `ahead`: the largest error of all gradients before it. For a shape or
/// a cast it counts besides `before`, because the gradient of another shape is not compared.
void CallRule::show_effect(EntryPair& entry, std::uint32_t forward, double error, double before, double ahead,
                           double onset) {
  const auto at = quiet_at_.find(forward);
  if (at == quiet_at_.end()) return;
  Finding& found = quiet_calls_[at->second];
  if (found.entry.empty()) return;
  if (found.kind != Kind::argument) before = std::max(before, ahead);
  if (error <= kMargin * before + std::max(onset, walk_.threshold * kSingleRoundoff)) return;
  entry.touched = true;
  found.text += fmt::format(", but its gradients differ: error {} at {}, {} before", error_text(error),
                            walk_.target_name(entry.target), error_text(before));
  walk_.confirm(std::exchange(found, {}), before);
}

/// The first call with another shape that the entry takes an input from, within a few calls: views and
/// elementwise calls come before the call that combines it with another tensor. Null if no such call exists.
const CallRule::Rearranged* CallRule::rearranged_ahead(const EntryPair& entry) const {
  constexpr unsigned kMostBehind = 3;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    const auto maker = from == kNone ? rearranged_.end() : rearranged_.find(target_.items[from].api);
    if (maker != rearranged_.end() && maker->second.behind < kMostBehind) return &maker->second;
  }
  return nullptr;
}

/// Whether the two operands have each other's shapes, in a call where their order matters: a difference, a
/// quotient. The statistics of the output may be the same, as those of differences of positions are.
bool CallRule::are_exchanged(const EntryPair& entry) const {
  std::vector<std::string_view> ours;
  std::vector<std::string_view> theirs;
  for (const std::uint32_t i : errors_.ordered_operands(entry.target, entry.name.operation())) {
    ours.push_back(target_.text(walk_.item_of(i).shape));
    theirs.push_back(golden_.text(golden_.items[errors_.golden_item[i]].shape));
  }
  return ours.size() == 2 && ours[0] != ours[1] && ours[0] == theirs[1] && ours[1] == theirs[0];
}

/// An error that a call of the same module introduces just after exchanged operands is their effect.
void CallRule::recall_exchanged(EntryPair& entry) {
  if (!exchanged_ || entry.compound) return;
  if (exchanged_->looks-- == 0) {
    exchanged_.reset();
    return;
  }
  if (!entry.best || !entry.best->is_evidence() || entry.best->rule != Rule::introduced || entry.touched ||
      walk_.module_around(entry.target, entry.golden) != exchanged_->module)
    return;
  Finding& found = quiet_calls_[exchanged_->call];
  exchanged_.reset();
  if (found.entry.empty()) return;
  const std::string_view given = std::string_view(found.text).substr(0, found.text.find(';'));
  found.text = fmt::format("{}; error {} at {}, {} before", given, error_text(entry.e_out),
                           walk_.target_name(entry.target), error_text(walk_.before));
  walk_.confirm(std::exchange(found, {}), walk_.before);
  entry.best->downstream = entry.touched = true;
}

/// Elements in another arrangement have the same statistics; an error shows only where a call combines them
/// with other tensors. The text names the earlier call as a clue for the reader; the evidence stays where it
/// is.
void CallRule::recall_shape(EntryPair& entry) {
  recall_exchanged(entry);
  const Rearranged* const ahead = rearranged_.empty() ? nullptr : rearranged_ahead(entry);
  if (ahead == nullptr) return;
  const Finding& shape = quiet_calls_[ahead->call];
  rearranged_[entry.target] = {ahead->call, ahead->behind + 1};
  if (entry.best && entry.best->is_evidence() && entry.best->rule == Rule::introduced && !shape.entry.empty())
    entry.best->text += fmt::format("; before it, at {}, the {}", shape.entry,
                                    std::string_view(shape.text).substr(0, shape.text.find(';')));
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
