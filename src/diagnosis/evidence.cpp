// SPDX-License-Identifier: Apache-2.0
// The rules by which an entry is judged.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "diagnosis/limits.hpp"
#include "diagnosis/rank_judge.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/structure.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Item;
using dump::State;

constexpr std::size_t kMostDataPlaces = 4096;
constexpr std::size_t kMostRepeated = 4096;

}  // namespace

/// What follows from it is different, by no fault.
void RankJudge::flip(Entry& entry, double error) {
  flipped_ = true;
  entry.touched = true;
  flips_ = std::max(flips_, std::min(error, 1.0));
}

/// The largest output error of those who put the items out.
double RankJudge::carried(std::uint32_t target_item, std::uint32_t golden_item) {
  double error = 0;
  if (target_item != kNone) {
    const std::uint32_t api = target_.items[target_item].api;
    const auto alone = alone_target_.find(api);
    error = alone != alone_target_.end()
                ? alone->second
                : std::max(static_cast<double>(errors_.output[api]), e_of(target_item));
  }
  if (golden_item != kNone) {
    const std::uint32_t api = golden_.items[golden_item].api;
    const auto alone = alone_golden_.find(api);
    // Of a partner that comes later here, nothing has been seen yet: its error explains none.
    const std::uint32_t partner = alignment_.target_of[api];
    const double other = alone != alone_golden_.end()        ? alone->second
                         : partner != kNone && partner < at_ ? static_cast<double>(errors_.output[partner])
                                                             : 0;
    error = std::max(error, other);
  }
  return error;
}

/// What the statistics of an entry's outputs do not show.
double RankJudge::hidden_of(std::uint32_t target_api) const {
  double hidden = 0;
  if (target_api == kNone || target_api > at_) return hidden;
  const Api& api = target_.apis[target_api];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    if (item_of(i).state == State::output) hidden = std::max(hidden, static_cast<double>(errors_.hidden[i]));
  }
  return hidden;
}

std::string_view RankJudge::producer_name(std::uint32_t target_item, std::uint32_t golden_item) const {
  return target_item != kNone ? target_name(target_.items[target_item].api)
                              : golden_name(golden_.items[golden_item].api);
}

void RankJudge::structure(Entry& entry, double& scalar_error) {
  const double rounding =
      std::min(kMostScalarRounding, threshold_ * (std::max({forward_error(), backward_, history_.backward}) +
                                                  kUnrecordedRoundings * kSingleRoundoff));
  const CalledOtherwise called =
      called_otherwise(target_, entry.target, golden_, entry.golden, errors_.golden_item, rounding);
  scalar_error = called.scalar_error;
  const auto call_of = [&](const StructuralDifference& difference) {
    return fmt::format("{}\n{}\n{}\n{}", entry.name.operation(), difference.place, difference.target,
                       difference.golden);
  };
  // What one call was given otherwise others are as well: the updates of all parameters.
  const auto& known = called.first ? called.first : called.excused;
  const auto again =
      known && known->kind == Kind::argument ? repeated_.find(call_of(*known)) : repeated_.end();
  if (!called.first && again == repeated_.end()) return;
  const StructuralDifference& difference = *known;
  double e_out = 0;           // of whole numbers as well
  std::string other_outputs;  // how they differ where no error is known
  const Api& api = target_.apis[entry.target];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    if (item_of(i).state != State::output || errors_.golden_item[i] == kNone) continue;
    e_out = std::max(e_out, e_of(i));
    const std::string_view dtype = target_.text(item_of(i).dtype);
    const std::string_view golden_dtype = golden_.text(golden_.items[errors_.golden_item[i]].dtype);
    if (other_outputs.empty() && checksums_differ(i) && entry.e_in == 0 && !input_checksums_differ(entry))
      other_outputs = fmt::format("the checksum of {} differs", place_text(target_, item_of(i)));
    if (difference.kind == Kind::argument && !same_dtype(dtype, golden_dtype))
      other_outputs =
          fmt::format("{} is {}, golden {}", place_text(target_, item_of(i)), dtype, golden_dtype);
  }
  const bool effect = e_out > kEffect * entry.e_in + entry.u || !other_outputs.empty();
  // Rounding, or how far the runs have drifted apart, may hide what another setting does.
  // So may statistics that are rounded to half types; truths are about how rather than what, as `inplace` is.
  const double shown_from = hidden_of(entry.target);
  const bool truth = difference.target == "True" || difference.target == "False";
  const bool below = e_out == 0 && !truth && entry.u > kSingleRoundoff && shown_from >= entry.u;
  const bool hidden = !effect && difference.kind == Kind::argument && difference.setting &&
                      (e_out > 0 || below) && !flipped_ && entry.nature != Nature::random;
  const bool input_grad = difference.kind == Kind::requires_grad && difference.item != kNone &&
                          item_of(difference.item).state != State::output;
  // A shape or dtype that was handed on is no news.
  const bool by_decision = difference.kind == Kind::shape && (flipped_ || entry.nature == Nature::discrete);
  const bool handed_on = (entry.touched && difference.kind != Kind::argument) || by_decision;
  Finding found = finding(entry, difference.kind, Rule::structure, kInfinite);
  found.item = difference.item;
  found.place = difference.place;
  if (effect || difference.kind == Kind::dtype || difference.kind == Kind::shape) {
    found.confidence = handed_on ? Confidence::hint : Confidence::certain;
    if (by_decision) flip(entry, 1);
  } else if (hidden) {
    found.confidence = Confidence::likely;
  } else {
    found.confidence = input_grad && !entry.touched && target_name(entry.target).starts_with("Module.")
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
  if (difference.kind == Kind::requires_grad && !found.is_evidence()) await_gradients(entry, found, given);
  if (difference.kind == Kind::argument && found.is_evidence()) {
    if (again != repeated_.end()) {
      ++again->second.times;
      found.joined = true;
    } else if (repeated_.size() < kMostRepeated) {
      repeated_.emplace(call_of(difference), Repeated{entry.target, 0});
    }
  }
  offer(entry, std::move(found));
}

/// The output of a call with another argument may hide its effect, which its gradients show.
void RankJudge::await_effect(const Entry& entry, Finding found) {
  if (quiet_calls_.size() >= kMostFindings || options_.without.contains(Rule::structure)) return;
  name_places(found, entry.target, entry.golden);
  const auto number = static_cast<std::uint32_t>(quiet_calls_.size());
  quiet_calls_.push_back(std::move(found));
  quiet_at_.emplace(entry.target, number);
  const Api& api = target_.apis[entry.target];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    if (item_of(i).state != State::input) continue;
    const std::uint32_t from = target_flow_.find(target_keys_.of(i));
    if (from != ContentMap::kUnknown) quiet_at_.emplace(target_.items[from].api, number);
  }
}

/// A gradient that is wrong at or next to such a call is its effect.
void RankJudge::show_effect(Entry& entry, std::uint32_t forward, double error, double before) {
  const auto at = quiet_at_.find(forward);
  if (at == quiet_at_.end() || quiet_calls_[at->second].entry.empty()) return;
  Finding& found = quiet_calls_[at->second];
  entry.touched = true;
  found.text += fmt::format(", but its gradients differ: error {} at {}, {} before", error_text(error),
                            target_name(entry.target), error_text(before));
  confirm(std::exchange(found, {}), before);
}

/// What was a hint until its effect was seen.
void RankJudge::confirm(Finding found, double before) {
  touched_[found.target_api] = true;
  std::erase_if(out_.findings, [&](const Finding& other) {
    return other.target_api == found.target_api && other.kind == found.kind;
  });
  found.confidence = Confidence::certain;
  keep(std::move(found), before);
}

void RankJudge::sources(Entry& entry) {
  const Api& api = target_.apis[entry.target];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    const Item& item = item_of(i);
    if (!item.is_tensor || errors_.golden_item[i] == kNone || std::isnan(errors_.e[i])) continue;
    if (item.state == State::parameters) {
      parameter(entry, i, target_keys_.of(i));
    } else if (item.state == State::input && !entry.compound) {
      source(entry, i);
    }
  }
}

/// Where a tensor comes in that no recorded parameter has a part in: the module, the operation, the argument.
std::uint64_t RankJudge::data_place(const Entry& entry, std::uint32_t index) const {
  if (construct_ == nullptr || item_of(index).requires_grad != dump::RequiresGrad::no) return 0;
  const std::string_view path = module_path(construct_->parent(target_name(entry.target)));
  if (path.empty()) return 0;
  return std::hash<std::string>{}(
      fmt::format("{}\n{}\n{}", path, entry.name.operation(), place_text(target_, item_of(index))));
}

void RankJudge::know_data(const Entry& entry, std::uint32_t index) {
  const std::uint64_t place = data_place(entry, index);
  if (place != 0 && history_.data_errors.size() < kMostDataPlaces)
    history_.data_errors.try_emplace(place, static_cast<float>(e_of(index)));
}

/// What came in at the same place before, if that was data.
std::optional<double> RankJudge::data_error(const Entry& entry, std::uint32_t index) const {
  const auto known = history_.data_errors.find(data_place(entry, index));
  return known == history_.data_errors.end() ? std::nullopt : std::optional<double>(known->second);
}

/// What a backward gave on both sides, as an optimizer takes it: its error was judged there.
bool RankJudge::is_judged_gradient(std::uint32_t index, std::uint32_t partner) const {
  const std::uint32_t from = gradient_items_.find(target_keys_.of(index));
  return from != ContentMap::kUnknown &&
         golden_keys_.of(errors_.golden_item[from]) == golden_keys_.of(partner);
}

/// An input that is wrong before the entry computes.
void RankJudge::source(Entry& entry, std::uint32_t index) {
  const Item& item = item_of(index);
  const std::uint32_t partner = errors_.golden_item[index];
  const std::uint64_t key = target_keys_.of(index);
  const std::uint32_t from = target_flow_.find(key);
  const std::uint32_t golden_from = golden_flow_.find(golden_keys_.of(partner));
  bool known = from != ContentMap::kUnknown;
  bool golden_known = golden_from != ContentMap::kUnknown;
  // Two states of an optimizer that happen to be equal on one side: none of them comes from the other.
  const bool updates = entry.optimizer || (gradients_ > 0 && is_in_place(entry.name.operation()));
  if (updates && known != golden_known) {
    const bool paired = known ? alignment_.has_golden(target_.items[from].api)
                              : alignment_.target_of[golden_.items[golden_from].api] != kNone;
    if (paired) known = golden_known = false;
  }
  const double e = e_of(index);
  if (!known && !golden_known) {
    const auto position = position_of(target_, item);
    if (parameter_items_.find(key) != ContentMap::kUnknown ||
        (position && is_parameter_position(entry.name.operation(), *position))) {
      parameter(entry, index, key);
      return;
    }
    if (is_judged_gradient(index, partner)) return;
    // A view of a parameter has drifted as parameters have.
    const bool trained = item.requires_grad == dump::RequiresGrad::yes;
    if (drift_ && trained && !drift_->stands_out(e_of(index), false, std::nullopt, entry.u)) return;
  }
  if (!known && !golden_known && !trained_ &&
      e_of(index) < kUnrecordedRoundings * threshold_ * kSingleRoundoff)
    know_data(entry, index);
  if (e == 0 || (flipped_ && std::isinf(e))) return;
  const double u = entry.u;
  Finding found;
  if (!known && !golden_known) {
    // What comes first has no noise of half types yet. What is computed from data by something unrecorded is
    // distinguished from data by whether anything came before, or by what came in at the same place before.
    const std::optional<double> data = data_error(entry, index);
    // Rounding and drift leave integers as they are, but for what a decision made of it.
    const bool settled = is_integer(target_.text(item.dtype));
    const bool derived = (forward_ > 0 || rounded_ > 0) && !data && !settled;
    // The second moment is made of squares of gradients, whatever noise these are.
    const double gradients = std::max(gradients_, history_.gradients);
    const double ahead = data      ? *data
                         : settled ? std::max(flips_, history_.flipped ? forward_error() : 0)
                         : updates ? std::max({forward_error(), gradients, gradients * gradients, rounded_})
                                   : std::max(forward_error(), derived ? rounded_ : 0);
    // What comes in is equal but for single elements; of float32, random numbers and scaling differ a little.
    const double own =
        derived ? kUnrecordedRoundings * u
                : std::max(unit_roundoff(target_.text(item.dtype)), kUnrecordedRoundings * kSingleRoundoff);
    found = finding(entry, derived ? Kind::unrecorded : Kind::data, Rule::source, e / (ahead + own));
    if (is_shown(found.excess)) {
      const bool made = derived || !may_be_data(entry, index);
      found.kind = made ? Kind::unrecorded : Kind::data;
      found.text = fmt::format("{} comes from {} and differs by {}", place_text(target_, item),
                               made ? "unrecorded code" : "outside the recorded code", error_text(e));
      if (settled && !data && (forward_ > 0 || rounded_ > 0)) {
        found.text += "; integers do not differ by rounding";
        // A decision that nobody recorded may have made them.
        found.confidence = std::min(found.confidence, Confidence::likely);
      } else {
        found.text += fmt::format("; {} by at most {}", data ? "earlier data there" : "everything before it",
                                  error_text(ahead));
      }
      if (made) {
        const std::string module = module_around(entry.target, entry.golden);
        const bool trained = item.requires_grad == dump::RequiresGrad::yes && !entry.optimizer;
        found.next = made_unrecorded(module, trained);
      }
      // Data may be wrong beside any other fault, but all of it comes from one loader.
      found.joined = made ? is_tainted(entry, index) : data_differs_;
      data_differs_ = data_differs_ || (!made && found.is_evidence());
      if (made && found.is_evidence() && settle_between(0, entry, e, ahead))
        found.downstream = entry.touched = true;
    }
  } else {
    const bool partners = known && golden_known &&
                          alignment_.golden_of[target_.items[from].api] == golden_.items[golden_from].api;
    if (partners && !tensors_) return;  // then its error is the output's
    // Errors of two kinds cannot be held against each other.
    if (partners && errors_.by_statistics[index] != errors_.by_statistics[from]) return;
    const double q = carried(known ? from : kNone, golden_known ? golden_from : kNone);
    // What the maker's statistics do not show, as those of a half type that are rounded to it, may be there.
    double unseen =
        std::max(known ? hidden_of(target_.items[from].api) : 0,
                 golden_known ? hidden_of(alignment_.target_of[golden_.items[golden_from].api]) : 0);
    // Nor is anything known of how calls that one recorder leaves out carry it on.
    if ((known && target_only_.has(target_.items[from].api)) ||
        (golden_known && golden_only_.has(golden_.items[golden_from].api)))
      unseen = std::max(unseen, rounded_);
    const double ratio = e / (kHandedOn * std::max(q, unseen) + kHandedOn * u);
    // Entries of one side alone answer for what comes from them.
    const auto answer = [&](const std::unordered_map<std::uint32_t, std::uint32_t>& runs,
                            std::uint32_t producer) {
      const auto run = runs.find(producer);
      if (run == runs.end()) return false;
      runs_[run->second].consumed = true;
      if (ratio > 1) settle_run(runs_[run->second], target_name(entry.target), e, q);
      return true;
    };
    const bool alone = !other_operations_ && known && answer(run_of_target_, target_.items[from].api);
    const bool golden_alone =
        !other_operations_ && golden_known && answer(run_of_golden_, golden_.items[golden_from].api);
    if (alone || golden_alone) {
      if (ratio > 1) entry.touched = true;
      return;
    }
    const bool certainly = !partners && ratio > 1 && !other_operations_;
    const bool fed = known && golden_known && !partners && !other_operations_;
    found = finding(entry, fed ? Kind::feed : Kind::unrecorded, Rule::source,
                    certainly ? threshold_ * ratio : ratio);
    const std::string_view producer = producer_name(known ? from : kNone, golden_known ? golden_from : kNone);
    if (is_shown(found.excess)) {
      const std::string place = place_text(target_, item);
      if (found.kind == Kind::feed) {
        found.text = fmt::format("{} comes from {}, in golden from {}; it differs by {}", place, producer,
                                 golden_name(golden_.items[golden_from].api), error_text(e));
      } else if (other_operations_) {
        found.text = fmt::format(
            "{} differs by {}, everything compared before it by at most {}; it was produced by {}, "
            "which has no partner",
            place, error_text(e), error_text(q), producer);
      } else {
        found.text =
            fmt::format("unrecorded code between {} and this entry changed {}: error {} there, {} here",
                        producer, place, error_text(q), error_text(e));
      }
    }
    // What that producer made of evidence is downstream; the change itself is not, unless it is known who
    // made it.
    found.downstream = history_.evidence;
    const std::uint32_t maker =
        known ? target_.items[from].api : alignment_.target_of[golden_.items[golden_from].api];
    if (maker != kNone && found.is_evidence() && settle_between(maker, entry, e, q))
      found.downstream = entry.touched = true;
  }
  found.item = index;
  found.place = place_text(target_, item);
  offer(entry, std::move(found));
}

/// The last step of a parameter on both sides, as far as its statistics show.
ParameterStep RankJudge::last_step(std::uint32_t index) {
  const Item& item = item_of(index);
  const ParameterTrace now{parameter_statistics(target_, item),
                           parameter_statistics(golden_, golden_.items[errors_.golden_item[index]])};
  const auto [known, added] =
      history_.parameters.try_emplace(std::hash<std::string_view>{}(target_.name(item)), now);
  if (added) return {};
  const std::uint32_t partner = errors_.golden_item[index];
  return step_between(std::exchange(known->second, now), now, elements_of(target_.text(item.shape)),
                      errors_.tolerance_of(index, partner));
}

/// Relative error of the gradient that the parameter was updated by, if somebody recorded it.
std::optional<double> RankJudge::gradient_error(std::uint64_t key) const {
  const std::uint32_t index = parameter_items_.find(key);
  if (index == ContentMap::kUnknown) return std::nullopt;
  const auto parsed = dump::parse_entry_name(target_name(item_of(index).api));
  const auto found = history_.gradient_traces.find(gradient_key(parsed->base, target_.name(item_of(index))));
  return found == history_.gradient_traces.end() ? std::nullopt : std::optional<double>(found->second.error);
}

/// A parameter is judged where it is used first.
void RankJudge::parameter(Entry& entry, std::uint32_t index, std::uint64_t key) {
  const Item& item = item_of(index);
  const ParameterStep step = last_step(index);
  const std::optional<double> gradient = gradient_error(key);
  if (!tensors_ && step.n > 0) {
    // An update that goes by the sign of a gradient goes either way where the gradient is noise.
    const double noise = std::min(gradient.value_or(std::max(history_.backward, gradients_)), 1.0);
    const double flipped = kFlippedSigns * std::max(step.target, step.golden) * std::sqrt(noise);
    entry.hidden = std::max(entry.hidden, flipped);
    updated_ = std::max(updated_, std::min(flipped, 1.0));
  }
  if (key != 0) {
    // Two parameters may begin alike: what has another error is another.
    const std::uint32_t judged = judged_parameters_.find(key);
    if (judged != ContentMap::kUnknown && e_of(index) <= kSameParameter * (e_of(judged) + entry.u)) return;
    judged_parameters_.put(key, index);
  }
  ++parameters_judged_;
  const double e = e_of(index);
  parameters_ = std::max(parameters_, std::min(e, 1.0));
  const double u = std::max(unit_roundoff(target_.text(item.dtype)), kSingleRoundoff);
  // Where gradients are nothing but noise, so are updates.
  const bool noisy = gradient.value_or(0) > kNoisyGradient;
  double excess = e / (kUnrecordedRoundings * u);
  const auto position = position_of(target_, item);
  const bool is_running = position && is_running_statistic(entry.name.operation(), *position);
  const char* const what = is_running ? "a running statistic" : "a parameter";
  std::string text = fmt::format("{} is {} and differs by {} before it is used", place_text(target_, item),
                                 what, error_text(e));
  if (history_.steps > 0) {
    if (history_.evidence) return;  // by what was seen in an earlier step
    const double steps = history_.steps;
    const bool is_vector = sizes_of(target_.text(item.shape)).size() < 2;
    // Where the step is most of the value, noise of small gradients shows: their sign may flip, of all of a
    // vector's elements.
    const bool is_buffer = item.requires_grad == dump::RequiresGrad::no && !is_half(history_.coarsest);
    const double flips =
        is_buffer ? 0 : step.golden * (is_vector ? kFlippedStepsOfVector : kFlippedStepsOfMatrix);
    const double limit = std::max(trained_rounding(u) * steps, flips);
    excess = noisy ? 0 : threshold_ * e / limit;
    text = fmt::format("{} differs by {} after the update, more than rounding explains",
                       place_text(target_, item), error_text(e));
    std::optional<Update> update;
    if (tensors_) update = reading_.update(index, errors_.golden_item[index]);
    if (!first_updated_) {
      first_updated_ = finding(entry, Kind::optimizer, Rule::source, 0);
      name_places(*first_updated_, entry.target, entry.golden);
      first_updated_->place = place_text(target_, item);
      first_updated_->item = index;
    }
    if (!update && !noisy) {
      steps_.add(step, u);
      // A gradient that cancels may be zero on one side; experts may have nothing to do on one side.
      const bool may_rest = (is_vector && !gradient) || history_.flipped;
      if (!may_rest && step.rests_alone(u)) {
        excess = kCertain * threshold_;
        text = fmt::format("{} was updated in {} only", place_text(target_, item),
                           step.target == 0 ? "golden" : "this run");
      }
    }
    if (update) {
      if (!noisy) updates_.add(*update);
      const double deviation = std::abs(update->gain - 1);
      excess =
          !noisy && deviation > kOtherStep && e > kLeastErrorOfStep ? threshold_ * deviation / kOtherStep : 0;
      text = fmt::format("{} was updated by {:.3g} times golden's step", place_text(target_, item),
                         update->gain);
    }
  }
  // Noise hardly moves a norm.
  const double n = static_cast<double>(elements_of(target_.text(item.shape)));
  if ((tensors_ || history_.steps == 0) && std::isfinite(e) && n > 0 && !noisy) {
    const double shift =
        errors_.b[index] / (kChance * e / std::sqrt(n) + kNormRounding + (is_half(u) ? kShiftOfHalf * u : 0));
    if (shift >= kShifted && threshold_ * shift / kShifted > excess) {
      excess = threshold_ * shift / kShifted;
      text = fmt::format("{} is {} whose norm differs by {} before it is used, more than rounding explains",
                         place_text(target_, item), what, error_text(errors_.b[index]));
    }
  }
  if (drift_ && !drift_->stands_out(e, sizes_of(target_.text(item.shape)).size() < 2, gradient, u)) return;
  Finding found = finding(entry, Kind::parameter, Rule::source, excess);
  found.item = index;
  found.place = place_text(target_, item);
  found.text = std::move(text);
  if (!found.is_evidence()) {
    offer(entry, std::move(found));
    return;
  }
  found.downstream = history_.evidence;
  entry.touched = true;
  ++parameters_wrong_;
  parameter_largest_ = std::max(parameter_largest_, e);
  if (first_parameter_) return;
  name_places(found, entry.target, entry.golden);
  first_parameter_ = std::move(found);
  before_first_parameter_ = before_;
}

}  // namespace msprobe::diagnosis
