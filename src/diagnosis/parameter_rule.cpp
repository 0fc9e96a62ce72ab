// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/parameter_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "pairing/updates.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Item;
using dump::Side;
using measuring::elements_of;
using measuring::number_of;
using measuring::sizes_of;
using measuring::unit_roundoff;
using pairing::is_parameter_position;
using pairing::kNone;
using pairing::name_in_model;
using pairing::place_of;
using pairing::place_text;
using pairing::position_of;

/// With as many digits as tell it from 1.
std::string factor_text(double factor) {
  const std::string text = fmt::format("{:.3g}", factor);
  return text == "1" ? fmt::format("{:.6g}", factor) : text;
}

/// Whether some calls of one operation in a row, of which the call of `part` is one, take parameters that
/// together have the elements of `whole` and the squares of its elements.
bool is_part_of(const Side& side, const Item& part, const Side& other, const Item& whole) {
  constexpr std::uint32_t kNearby = 8;  // chosen, not measured
  struct Taken {
    std::uint64_t elements = 0;
    double squares = 0;
  };
  std::vector<Taken> parts;
  std::size_t own = 0;
  const auto end = std::min<std::size_t>(side.apis.size(), std::size_t{part.api} + kNearby + 1);
  for (std::uint32_t api = part.api - std::min(part.api, kNearby); api < end; ++api) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.base != side.parsed_name(part.api).base || name.direction != dump::Direction::forward) continue;
    if (api == part.api) own = parts.size();
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if (!item.is_tensor || place_of(side, item) != place_of(side, part)) continue;
      parts.push_back({elements_of(side.text(item.shape)), std::pow(number_of(side, item, dump::kNorm), 2)});
    }
  }
  const std::uint64_t elements = elements_of(other.text(whole.shape));
  const double norm = number_of(other, whole, dump::kNorm);
  for (std::size_t first = 0; first <= own; ++first) {
    Taken sum;
    for (std::size_t i = first; i < parts.size() && sum.elements < elements; ++i) {
      sum.elements += parts[i].elements;
      sum.squares += parts[i].squares;
      if (i >= own && sum.elements == elements && std::abs(std::sqrt(sum.squares) - norm) <= kAlike * norm)
        return true;
    }
  }
  return false;
}

}  // namespace

/// The last step of a parameter on both sides, as far as its statistics show.
ParameterStep ParameterRule::last_step(std::uint32_t index) {
  if (history_.ends && history_.steps == 0) return {};
  const Item& item = walk_.item_of(index);
  const ParameterTrace now{parameter_statistics(target_, item),
                           parameter_statistics(golden_, golden_.items[errors_.golden_item[index]])};
  const auto name_of = [&](std::uint32_t i) {
    return std::hash<std::string_view>{}(target_.name(walk_.item_of(i)));
  };
  const auto [known, added] = history_.parameters.try_emplace(name_of(index), now);
  ParameterTrace past = std::exchange(known->second, now);
  if (added) {
    // The weight of a norm is constant before its first update, so that only its module knew it.
    const std::uint32_t named = walk_.parameter_items.find(walk_.target_keys.of(index));
    const auto module =
        named == ContentMap::kUnknown ? history_.parameters.end() : history_.parameters.find(name_of(named));
    if (module == history_.parameters.end() || named == index) return {};
    past = module->second;
  }
  return step_between(past, now, elements_of(target_.text(item.shape)),
                      errors_.tolerance_of(index, errors_.golden_item[index]));
}

/// The relative error of the gradient that updated the parameter, if it was recorded.
std::optional<double> ParameterRule::gradient_error(std::uint64_t key) const {
  const std::uint32_t index = walk_.parameter_items.find(key);
  if (index == ContentMap::kUnknown) return std::nullopt;
  const dump::EntryName parsed = walk_.target.parsed_name(walk_.item_of(index).api);
  const auto found =
      history_.gradient_traces.find(gradient_key(parsed.base, target_.name(walk_.item_of(index))));
  return found == history_.gradient_traces.end() ? std::nullopt : std::optional<double>(found->second.error);
}

/// The inputs that calls take as parameters, where no parameters of modules are recorded (L1).
const ParameterRule::TakenContents& ParameterRule::taken() {
  if (taken_) return *taken_;
  taken_.emplace();
  const auto collect = [](const Side& side, const ContentKeys& keys, ContentMap& contents) {
    for (const dump::Api& api : side.apis) {
      const dump::EntryName parsed = side.parsed_name(api);
      if (parsed.direction != dump::Direction::forward) continue;
      for (const std::uint32_t i : api.items()) {
        const Item& item = side.items[i];
        const auto position =
            item.state == dump::State::input && item.is_tensor ? position_of(side, item) : std::nullopt;
        if (position && is_parameter_position(parsed.operation(), *position)) contents.put(keys.of(i), i);
      }
    }
  };
  collect(target_, walk_.target_keys, taken_->target);
  collect(golden_, walk_.golden_keys, taken_->golden);
  return *taken_;
}

/// Describes a parameter with another name than golden's, while one of the two names is equal in both runs;
/// empty if the name is the same.
std::string ParameterRule::other_of(std::uint32_t index, std::uint64_t key) {
  const std::uint64_t golden_key = walk_.golden_keys.of(errors_.golden_item[index]);
  // Steps by signs leave elements of one size: then the means alone differ.
  if (key == golden_key) return {};
  const std::string place = place_text(target_, walk_.item_of(index));
  if (walk_.parameter_items.size() == 0) {
    const std::uint32_t elsewhere = taken().golden.find(key);
    if (elsewhere == ContentMap::kUnknown) return {};
    return fmt::format("{} is the parameter that golden uses at {}", place,
                       walk_.golden_name(golden_.items[elsewhere].api));
  }
  const std::uint32_t ours = walk_.parameter_items.find(key);
  const std::uint32_t theirs = walk_.golden_parameter_items.find(golden_key);
  if (ours == ContentMap::kUnknown || theirs == ContentMap::kUnknown) return {};
  const std::string name = name_in_model(target_, target_.items[ours]);
  const std::string golden_name = name_in_model(golden_, golden_.items[theirs]);
  if (name == golden_name) return {};
  const auto has = [](const Side& side, std::uint32_t item, const std::string& wanted) {
    return item != ContentMap::kUnknown && name_in_model(side, side.items[item]) == wanted;
  };
  const bool own_equal = has(golden_, walk_.golden_parameter_items.find(key), name);
  const bool other_equal = has(target_, walk_.parameter_items.find(golden_key), golden_name);
  if (!own_equal && !other_equal) return {};
  return fmt::format("{} is {}, in golden {}, and {} as in golden", place, name, golden_name,
                     own_equal && other_equal ? "both are" : (own_equal ? name : golden_name) + " is");
}

/// Reports that the code takes another parameter, or that the call has a wrong partner: then the parameter
/// itself is right.
bool ParameterRule::is_another(EntryPair& entry, std::uint32_t index, std::uint64_t key) {
  // Weights of norms are all near 1 and agree by chance.
  if (entry.optimizer || walk_.e_of(index) < kAlike) return false;
  std::string text = other_of(index, key);
  if (text.empty()) return false;
  const bool named = walk_.parameter_items.size() > 0;
  const ContentMap& parameters = named ? walk_.parameter_items : taken().target;
  bool other_inputs = false;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != dump::State::input || walk_.e_of(i) <= kFew * entry.u) continue;
    other_inputs = other_inputs || parameters.find(walk_.target_keys.of(i)) == ContentMap::kUnknown;
  }
  // Without a name, it may also be the same parameter before an update.
  if (other_inputs && !named) return false;
  if (other_inputs) {
    errors_.leave_out(entry.target);
    ++walk_.others_parameters;
    return true;
  }
  Finding found = walk_.finding(entry, Kind::feed, Rule::source, measuring::kInfinite);
  found.confidence = Confidence::certain;
  found.item = index;
  found.place = place_text(target_, walk_.item_of(index));
  found.text = std::move(text);
  found.next = "compare which parameter the code uses there";
  // For a module, the finding at its operation already says so.
  found.joined = walk_.item_of(index).state == dump::State::parameters && walk_.any_evidence;
  entry.touched = true;
  walk_.offer(entry, std::move(found));
  return true;
}

bool ParameterRule::is_of_another(const EntryPair& entry) {
  if (pairing::takes_parameter_lists(walk_.target_name(entry.target))) return false;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != dump::State::input || !item.is_tensor || errors_.golden_item[i] == kNone) continue;
    const Item& partner = golden_.items[errors_.golden_item[i]];
    if (elements_of(target_.text(item.shape)) == elements_of(golden_.text(partner.shape))) return false;
    errors_.leave_out(entry.target);
    ++walk_.others_parameters;
    return true;
  }
  return false;
}

bool ParameterRule::is_of_part(const EntryPair& entry) {
  if (entry.compound) return false;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != dump::State::input || !item.is_tensor || errors_.golden_item[i] == kNone) continue;
    const auto position = position_of(target_, item);
    if (!position || !is_parameter_position(entry.name.operation(), *position)) continue;
    const Item& partner = golden_.items[errors_.golden_item[i]];
    const std::uint64_t ours = elements_of(target_.text(item.shape));
    const std::uint64_t theirs = elements_of(golden_.text(partner.shape));
    if (ours == theirs) continue;
    const bool part = ours < theirs ? is_part_of(target_, item, golden_, partner)
                                    : is_part_of(golden_, partner, target_, item);
    if (!part) return false;
    errors_.leave_out(entry.target);
    return true;
  }
  return false;
}

/// Whether the side with the coarser type rests because its rounding loses the step. A norm shows a step d in
/// one direction as the root of 2 d.
bool ParameterRule::rests_by_rounding(const ParameterStep& step, std::uint32_t index, double u) const {
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const bool ours_is_coarser =
      unit_roundoff(target_.text(walk_.item_of(index).dtype)) > unit_roundoff(golden_.text(partner.dtype));
  const double rests = ours_is_coarser ? step.target : step.golden;
  const double moves = ours_is_coarser ? step.golden : step.target;
  return rests == 0 && moves * moves / 2 < 2 * u;
}

/// The name of a parameter that no recorded optimizer has, such as an average of another model's weights.
/// Empty if an optimizer has it, or if names are unknown.
std::string ParameterRule::name_outside_optimizer(std::uint64_t key) {
  const std::uint32_t index = walk_.parameter_items.find(key);
  if (index == ContentMap::kUnknown) return {};
  if (!updated_) {
    updated_.emplace();
    for (const Side* side : {&target_, &golden_}) {
      for (const dump::OptimizerSettings& optimizer : side->header.training.optimizers) {
        for (const dump::OptimizerGroup& group : optimizer.groups)
          updated_->insert(group.parameters.begin(), group.parameters.end());
      }
    }
    if (updated_->contains("")) updated_->clear();
  }
  std::string name = name_in_model(target_, target_.items[index]);
  return updated_->empty() || updated_->contains(name) ? std::string() : name;
}

/// The order of the first entry in a module: its parameters exist before that entry, but are recorded at the
/// module's end.
std::uint64_t ParameterRule::first_order_within(const EntryPair& entry) const {
  std::uint64_t order = walk_.order_of(entry.target);
  if (!entry.compound || walk_.construct == nullptr) return order;
  const std::string_view module = walk_.target_name(entry.target);
  for (std::uint32_t api = entry.target; api-- > 0;) {
    const auto around = walk_.construct->around(walk_.target_name(api));
    if (std::find(around.begin(), around.end(), module) == around.end()) break;
    order = walk_.order_of(api) - 1;
  }
  return order;
}

/// Identifies a parameter without a content, as of one value or with NaN: calls of a module and the module
/// itself have it. It is one of those there that look the same. 0: the module is not known.
std::uint64_t ParameterRule::key_in_module(const EntryPair& entry, std::uint32_t index) const {
  std::string key = walk_.module_around(entry.target, entry.golden);
  if (key.empty()) return 0;
  const auto look_of = [&](const Item& item) {
    return fmt::format("\n{} {} {}", target_.text(item.shape), number_of(target_, item, dump::kMax),
                       number_of(target_, item, dump::kMin));
  };
  const Item& item = walk_.item_of(index);
  key += look_of(item);
  for (std::uint32_t i = target_.apis[entry.target].first; i < index; ++i) {
    const Item& other = walk_.item_of(i);
    if (other.is_tensor && other.state == item.state && look_of(other) == look_of(item)) key += '+';
  }
  return std::hash<std::string>{}(key);
}

/// Judges a parameter where it is first used.
void ParameterRule::judge(EntryPair& entry, std::uint32_t index, std::uint64_t key) {
  if (is_another(entry, index, key)) return;
  const Item& item = walk_.item_of(index);
  const ParameterStep step = last_step(index);
  const std::optional<double> gradient = gradient_error(key);
  // Where gradients are nothing but noise, so are updates.
  const bool noisy = gradient.value_or(0) > kNoisy || history_.noise_contents.contains(key);
  if (noisy && history_.steps > 0 && !history_.evidence && walk_.e_of(index) > kHalf) {
    walk_.noise_alone.insert(index);
    walk_.out.explained[index] = std::numeric_limits<float>::infinity();
    entry.e_in = entry.b_in = entry.spread = 0;
    walk_.measure_inputs(entry);
  }
  if (!walk_.tensors && step.n > 0) {
    // An update that goes by the sign of a gradient, as Adam's first updates do, goes either way where the
    // gradient is noise. Such elements are off by twice the step, the whole parameter by twice the step times
    // the root of the gradient's error, if gradients spread evenly around zero. Right pairs of hidden size 64
    // to 512 had a hundredth of the bound.
    const double noise = std::min(gradient.value_or(std::max(history_.backward, largest_.gradients)), 1.0);
    const double flipped = kHalf * std::max(step.target, step.golden) * std::sqrt(noise);
    entry.hidden = std::max(entry.hidden, flipped);
    if (pairing::is_elementwise(entry.name.operation()))
      entry.spread = std::max(entry.spread, flipped / std::sqrt(static_cast<double>(step.n)));
    largest_.updated = std::max(largest_.updated, std::min(flipped, 1.0));
  }
  if (key == 0) key = key_in_module(entry, index);
  if (key != 0) {
    // Two parameters may begin with the same values. A clearly larger error shows that they are two.
    const std::uint32_t judged = judged_contents_.find(key);
    if (judged != ContentMap::kUnknown && walk_.e_of(index) <= kFew * (walk_.e_of(judged) + entry.u)) return;
    judged_contents_.put(key, index);
  }
  const double e = walk_.e_of(index);
  const auto position = position_of(target_, walk_.item_of(index));
  const bool is_running = position && pairing::is_running_statistic(entry.name.operation(), *position);
  const auto known = is_running ? running_.left(entry, index) : std::nullopt;
  const bool left = known.has_value();
  const RunningStatistics::Left before = known.value_or(RunningStatistics::Left());
  const std::string outside =
      !left && e > 0 && history_.steps > 0 ? name_outside_optimizer(key) : std::string();
  const bool apart = left || !outside.empty();
  judged_ += apart ? 0 : 1;
  largest_.parameters = std::max(largest_.parameters, std::min(e, 1.0));
  if (e == 0 && errors_.b[index] == 0 && history_.steps == 0) return;
  if (e > 0 && history_.steps > 0) takes_wrong_.insert(entry.target);
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const bool other_type = !measuring::same_dtype(target_.text(item.dtype), golden_.text(partner.dtype));
  const double u = std::max({unit_roundoff(target_.text(item.dtype)),
                             unit_roundoff(golden_.text(partner.dtype)), measuring::kSingleRoundoff});
  double excess = e / (before.error + kFew * u);
  const char* const what = is_running ? "a running statistic" : "a parameter";
  std::string text =
      fmt::format("{} is {} and {}{} before it is used", place_text(target_, item), what,
                  difference_text(target_, item, golden_, partner, e), std::isinf(e) ? "," : "");
  const std::uint64_t steps = history_.steps + walk_.updates;
  if (steps > 0 && history_.evidence) return;  // by what was seen in an earlier step
  if (left) {
    text = fmt::format(
        "{} is {} and differs by {}{}; what came in at {} explains at most {}", place_text(target_, item),
        what, error_text(e), before.by == kNone ? "" : fmt::format(" at {}", walk_.target_name(entry.target)),
        before.by == kNone ? "the call before" : walk_.target_name(before.by), error_text(before.error));
  } else if (steps > 0) {
    const bool is_vector = sizes_of(target_.text(item.shape)).size() < 2;
    // Where the step is most of the value, noise of small gradients shows, because it may flip the sign of
    // steps, in a vector of all its elements. With eager and with fused attention of two transformers in half
    // types (hidden 256, four layers, Adam) the second step of single matrices differed by half of the step.
    const bool is_buffer = item.requires_grad == dump::RequiresGrad::no && !is_half(history_.coarsest);
    const double flips = is_buffer ? 0
                                   : step.golden * (is_vector                    ? kMargin + kHalf
                                                    : is_half(history_.coarsest) ? kHalf
                                                                                 : kMargin / 8);
    // A running statistic follows what came in before.
    const double followed = is_running ? walk_.threshold * std::max(history_.forward, history_.noise) : 0;
    const double limit = std::max({trained_rounding(u) * static_cast<double>(steps), flips, followed});
    excess = noisy ? 0 : walk_.threshold * e / limit;
    text = outside.empty()
               ? fmt::format("{} differs by {} after the update, more than rounding explains",
                             place_text(target_, item), error_text(e))
               : fmt::format(
                     "{} ({}) differs by {} after the step, and no recorded optimizer updates it: it was "
                     "changed outside of the optimizer, as a copy or an average is",
                     place_text(target_, item), outside, error_text(e));
    std::optional<Update> update;
    // The step of a coarser type may be lost to its rounding.
    if (walk_.tensors && !other_type && history_.steps > 0)
      update = walk_.reading.update(index, errors_.golden_item[index]);
    if (!first_updated_ && outside.empty()) {
      first_updated_ = walk_.finding(entry, Kind::optimizer, Rule::source, 0);
      walk_.name_places(*first_updated_, entry.target, entry.golden);
      first_updated_->place = place_text(target_, item);
      first_updated_->item = index;
    }
    if (!update && !noisy) {
      if (outside.empty()) steps_.add(step, u);
      // A gradient that cancels may be zero on one side; experts may have nothing to do on one side.
      // So may what the coarser of two types cannot hold.
      // Where all parameters have another type, that loss is the fault.
      const bool master = walk_.dtype_setting && walk_.dtype_setting->by_parameters;
      const bool is_lost = other_type && !master && rests_by_rounding(step, index, u);
      const bool may_rest = (is_vector && !gradient) || history_.flipped || is_lost;
      if (!may_rest && step.rests_alone(u)) {
        excess = kMany * walk_.threshold;
        text = fmt::format("{} was updated in {} only", place_text(target_, item),
                           step.target == 0 ? "golden" : "this run");
      }
    }
    if (update) {
      if (!noisy && outside.empty()) updates_.add(*update);
      const double deviation = std::abs(update->gain - 1);
      excess = !noisy && deviation > kHalf && e > kRightKernel ? walk_.threshold * deviation / kHalf : 0;
      text = fmt::format("{} was updated by {} times golden's step", place_text(target_, item),
                         factor_text(update->gain));
    }
  }
  // Noise hardly moves a norm.
  const double n = static_cast<double>(elements_of(target_.text(item.shape)));
  if (!left && (walk_.tensors || steps == 0) && std::isfinite(e) && n > 0 && !noisy) {
    const double shift = errors_.b[index] / (kChance * e / std::sqrt(n) + kFew * measuring::kSingleRoundoff +
                                             (is_half(u) ? kHalf * u : 0));
    if (shift >= kMargin && walk_.threshold * shift / kMargin > excess) {
      excess = walk_.threshold * shift / kMargin;
      text = fmt::format("{} is {} whose norm differs by {} before it is used, more than rounding explains",
                         place_text(target_, item), what, error_text(errors_.b[index]));
    }
  }
  if (!left && walk_.drift &&
      !walk_.drift->stands_out(e, sizes_of(target_.text(item.shape)).size() < 2, gradient, u))
    return;
  Finding found = walk_.finding(entry, Kind::parameter, Rule::source, excess);
  found.item = index;
  found.place = place_text(target_, item);
  found.text = std::move(text);
  if (left)
    found.next = "compare the momentum of the call before, and what else changes the running statistics";
  else if (steps > 0)
    found.next =
        "compare what the optimizer does to it, and whether the rounding of its type loses small steps";
  if (!found.is_evidence()) {
    walk_.offer(entry, std::move(found));
    return;
  }
  const bool moved = before.by != kNone;
  const std::uint32_t at = moved ? before.by : entry.target;
  found.downstream = history_.evidence || (moved && walk_.touched[at]);
  const bool unread = is_running && is_unread(entry, index);
  // An unread statistic matters in evaluation only, so that the finding comes after all others.
  found.order = unread ? 2 * std::uint64_t{target_.apis.size()} : first_order_within(entry);
  entry.touched = !unread || entry.touched;
  if (!apart) {
    ++wrong_;
    if (step.n > 0 && step.target == 0 && step.golden > 0) ++rests_;
    if (step.n > 0 && step.golden == 0 && step.target > 0) ++golden_rests_;
  } else {
    ++outside_;
  }
  largest_error_ = std::max(largest_error_, e);
  if (first_ && (!first_is_unread_ || unread)) return;
  walk_.name_places(found, at, alignment_.golden_of[at]);
  first_ = std::move(found);
  first_is_unread_ = unread;
  before_first_ = walk_.before;
}

/// Whether a parameter is a running statistic that the call only writes: it differs, but the outputs of the
/// call agree.
bool ParameterRule::is_unread(const EntryPair& entry, std::uint32_t index) const {
  const double limit = walk_.threshold * (walk_.before + entry.u);
  return !entry.compound && errors_.output[entry.target] <= limit && walk_.e_of(index) > limit;
}

/// Makes findings at calls that take the parameter follow from it. Statistics hide most of a parameter's
/// difference, and a call that takes single rows of it shows more.
void ParameterRule::lead_to(const Finding& parameter) {
  if (history_.steps == 0) return;
  for (Finding& each : walk_.out.findings) {
    if (each.rule < Rule::introduced || each.order >= parameter.order || each.target_api == kNone) continue;
    if (!takes_wrong_.contains(each.target_api)) continue;
    each.downstream = true;
    each.order = parameter.order + 1;
  }
}

void ParameterRule::remember_noise(const EntryPair& entry) {
  if (!entry.noise || history_.ends) return;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const std::uint64_t key = walk_.item_of(i).state == dump::State::output ? walk_.target_keys.of(i) : 0;
    if (key != 0) noise_.insert(key);
  }
}

/// Reports all parameters that differ in one line. If most were updated differently, the finding is about the
/// optimizer.
void ParameterRule::finish() {
  history_.noise_contents = std::move(noise_);
  const bool by_tensors = updates_.size() > 0;
  const double deviation = by_tensors ? updates_.deviation() : steps_.deviation();
  const bool all_updates = deviation >= kMargin;
  const bool most = history_.steps > 0 && wrong_ > 1 && 2 * wrong_ > judged_;
  if (all_updates || most) {
    Finding found = all_updates ? std::move(*first_updated_) : std::move(*first_);
    found.kind = Kind::optimizer;
    found.rule = Rule::source;
    found.next.clear();
    if (all_updates) found.excess = walk_.threshold * deviation / kMargin;
    found.confidence = found.excess >= kMany * walk_.threshold ? Confidence::certain : Confidence::likely;
    const std::size_t updated = by_tensors ? updates_.size() : steps_.parameters();
    found.concerned = all_updates ? updated : wrong_;
    found.text =
        all_updates        ? fmt::format("optimizer: the step of {} parameters is {} times golden's", updated,
                                         factor_text(by_tensors ? updates_.median_gain() : steps_.median()))
        : rests_ == wrong_ ? fmt::format(
                                 "optimizer: {} of {} parameters are unchanged in this run since the step "
                                 "before, golden updates them",
                                 wrong_, judged_)
        : golden_rests_ == wrong_
            ? fmt::format(
                  "optimizer: {} of {} parameters are unchanged in golden since the step "
                  "before, this run updates them",
                  wrong_, judged_)
            : fmt::format("optimizer: {} of {} parameters differ after the update, by up to {}", wrong_,
                          judged_, error_text(largest_error_));
    lead_to(found);
    if (found.order < walk_.fault_order) walk_.clean = 0;
    walk_.keep(std::move(found), 0);
  } else if (first_) {
    Finding found = std::move(*first_);
    found.concerned = wrong_ + outside_;
    if (found.concerned > 1)
      found.text += fmt::format("; so do {} more of {} parameters", found.concerned - 1, judged_ + outside_);
    // These findings are about the same parameter, which code of the module takes before its recorded calls
    // do.
    for (Finding& each : walk_.out.findings) {
      const bool within = each.order > found.order && each.target_api <= found.target_api;
      if (within && each.kind == Kind::unrecorded && each.target_api != kNone) each.downstream = true;
    }
    lead_to(found);
    if (found.order < walk_.fault_order) walk_.clean = before_first_;
    walk_.keep(std::move(found), before_first_);
  }
}

}  // namespace msprobe::diagnosis
