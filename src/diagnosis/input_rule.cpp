// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/input_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "diagnosis/sentences.hpp"
#include "diagnosis/structure.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Item;
using dump::State;
using measuring::elements_of;
using measuring::kSingleRoundoff;
using measuring::number_of;
using measuring::unit_roundoff;
using pairing::is_parameter_position;
using pairing::kNone;
using pairing::module_path;
using pairing::place_text;
using pairing::position_of;

constexpr std::size_t kMostDataPlaces = 4096;

}  // namespace

/// What the entry takes, and from whom: is it downstream of evidence, may it be, is any of it not? How large
/// are the errors upstream of it?
void InputRule::follow(EntryPair& entry) {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (item.state != State::input) {
      if (item.state == State::parameters && !history_.evidence) walk_.untouched[i] = true;
      continue;
    }
    const std::uint64_t key = walk_.target_keys.of(i);
    const std::uint32_t from = walk_.target_flow.find(key);
    if (from != ContentMap::kUnknown) {
      const bool touched = walk_.touched[target_.items[from].api];
      entry.touched = entry.touched || touched;
      entry.upstream.join(walk_.reached[target_.items[from].api]);
      if (walk_.is_of_whole_numbers(i)) entry.upstream.join(walk_.anything_seen());
      if (!entry.compound) walk_.consumers[target_.items[from].api].push_back(entry.target);
      entry.noise = entry.noise || walk_.noisy[target_.items[from].api];
      walk_.untouched[i] = !touched;
      continue;
    }
    if (!item.is_tensor) continue;
    const bool parameter = walk_.parameter_items.find(key) != ContentMap::kUnknown;
    const auto position = position_of(target_, item);
    const bool taken_as_one = position && is_parameter_position(entry.name.operation(), *position);
    if (!parameter && !taken_as_one) {
      Upstream seen = walk_.anything_seen();
      // Its elements may still be in another order, as those of data that earlier evidence took.
      if (walk_.is_clean(i)) seen.error = 0;
      entry.upstream.join(seen);
    }
    if (errors_.golden_item[i] == kNone) continue;
    if (parameter) {
      walk_.untouched[i] = !history_.evidence;
    } else {
      entry.tainted = entry.tainted || is_tainted(entry, i);
    }
  }
}

void InputRule::examine(EntryPair& entry) {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    const Item& item = walk_.item_of(i);
    if (!item.is_tensor || errors_.golden_item[i] == kNone || std::isnan(errors_.e[i])) continue;
    if (item.state == State::parameters) {
      parameters_.judge(entry, i, walk_.target_keys.of(i));
    } else if (item.state == State::input && !entry.compound) {
      judge(entry, i);
    }
  }
}

/// Judges an input, which may be wrong before the entry computes.
void InputRule::judge(EntryPair& entry, std::uint32_t index) {
  const Item& item = walk_.item_of(index);
  const std::uint32_t partner = errors_.golden_item[index];
  const std::uint64_t key = walk_.target_keys.of(index);
  std::uint32_t from = trained_maker(walk_.target_keys, index, walk_.target_flow.find(key));
  std::uint32_t golden_from =
      trained_maker(walk_.golden_keys, partner, walk_.golden_flow.find(walk_.golden_keys.of(partner)));
  bool known = from != kNone;
  bool golden_known = golden_from != kNone;
  if (known && golden_known) prefer_partners(index, from, golden_from);
  if (known != golden_known && !entry.optimizer && !walk_.tensors) {
    const std::uint32_t other = known ? alignment_.golden_of[target_.items[from].api]
                                      : alignment_.target_of[golden_.items[golden_from].api];
    if (other != kNone &&
        (known ? gives_alike(golden_, other, golden_.items[partner]) : gives_alike(target_, other, item)))
      return;  // the other side hands on the same output
  }
  // Two states of an optimizer may happen to be equal on one side; then neither comes from the other.
  const bool updates =
      entry.optimizer || (largest_.gradients > 0 && pairing::is_in_place(entry.name.operation()));
  if (updates && known != golden_known) {
    const bool paired = known ? alignment_.has_golden(target_.items[from].api)
                              : alignment_.target_of[golden_.items[golden_from].api] != kNone;
    if (paired) known = golden_known = false;
  }
  const double e = walk_.e_of(index);
  if (entry.optimizer && e > kNoisy && share_of_largest(entry, index) < kTrainedRoundingHalf)
    entry.noise = true;  // share_of_largest() leaves exact zeros out
  if (!known && !golden_known) {
    if (buffers_.takes(entry, key)) return;
    const auto position = position_of(target_, item);
    if (walk_.parameter_items.find(key) != ContentMap::kUnknown ||
        (position && is_parameter_position(entry.name.operation(), *position))) {
      parameters_.judge(entry, index, key);
      return;
    }
    if (is_judged_gradient(index, partner)) return;
    if (std::string other = of_other_pass(walk_, index); !other.empty()) {
      offer_code(entry, index, std::move(other),
                 "compare after which backward pass each side makes this call");
      return;
    }
    // A view of a parameter has drifted as the parameters have.
    const bool trained = item.requires_grad == dump::RequiresGrad::yes;
    if (walk_.drift && trained && !walk_.drift->stands_out(walk_.e_of(index), false, std::nullopt, entry.u))
      return;
  }
  if (!known && !golden_known && !walk_.trained &&
      walk_.e_of(index) < kFew * walk_.threshold * kSingleRoundoff)
    know_data(entry, index);
  if (e == 0 || (walk_.flipped && std::isinf(e))) return;
  if (e > kFew * walk_.threshold * kSingleRoundoff &&
      errors_.are_exchanged(entry.target, entry.name.operation())) {
    offer_code(entry, index,
               fmt::format("its operands are exchanged: {} {}", place_text(target_, item),
                           difference_text(target_, item, golden_, golden_.items[partner], e)),
               "exchange the operands there on one side");
    return;
  }
  if (known || golden_known) {
    judge_passed_on(entry, index, known ? from : kNone, golden_known ? golden_from : kNone);
  } else {
    judge_unknown(entry, index, updates);
  }
}

/// Chooses among producers. If two tensors are equal on one side, as an average of weights is that has just
/// begun, the flow knows the last one as the producer. The other side then shows the right one.
void InputRule::prefer_partners(std::uint32_t index, std::uint32_t& from, std::uint32_t& golden_from) const {
  const auto put_out = [](const ContentKeys& keys, std::uint32_t api, std::uint32_t item) {
    return item_with(keys, api, State::output, {keys.of(item)});
  };
  const std::uint32_t ours = alignment_.target_of[golden_.items[golden_from].api];
  const std::uint32_t theirs = alignment_.golden_of[target_.items[from].api];
  if (ours == target_.items[from].api) return;
  if (ours != kNone && ours < walk_.at) {
    const std::uint32_t other = put_out(walk_.target_keys, ours, index);
    if (other != kNone) {
      from = other;
      return;
    }
  }
  if (theirs == kNone || theirs >= walk_.golden_next) return;
  const std::uint32_t other = put_out(walk_.golden_keys, theirs, errors_.golden_item[index]);
  if (other != kNone) golden_from = other;
}

/// The error of a tensor that the parts of a batch gave, as of a gradient which is added up from them: what
/// the parts computed is not compared. Results of the optimizer for other gradients explain nothing.
double InputRule::of_parts(const EntryPair& entry) const {
  const auto& split = walk_.split_batch;
  return split && entry.target >= split->first ? std::max(history_.coarsest, kRightKernel) : 0;
}

/// The coarsest type of the calls that take a parameter of this size.
double InputRule::type_of_users(std::uint32_t index) {
  if (!types_of_users_) types_of_users_ = types_of_users(target_, golden_);
  return (*types_of_users_)[elements_of(target_.text(walk_.item_of(index).shape))];
}

/// Judges an input that no recorded entry made.
void InputRule::judge_unknown(EntryPair& entry, std::uint32_t index, bool updates) {
  const Item& item = walk_.item_of(index);
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const double share = entry.optimizer ? share_of_largest(entry, index) : 1;
  const double e = share * walk_.e_of(index);
  const double u = entry.u;
  // Inputs that come first have no noise of half types yet. A tensor that unrecorded code computes from data
  // differs from data in two ways: other entries came before it, and no data came in at the same place
  // earlier.
  const std::optional<double> data = may_be_data(entry, index) ? data_error(entry, index) : std::nullopt;
  // Rounding and drift do not change integers, except after a decision that flipped.
  const bool settled = measuring::is_integer(target_.text(item.dtype));
  const bool derived = (largest_.forward > 0 || largest_.rounded > 0) && !data && !settled;
  // Unrecorded code may select elements whose errors the statistics of a half type hide.
  const double hidden = derived && !walk_.tensors ? largest_.coarsest / kFew : 0;
  // The second moment comes from squares of gradients, even of noisy ones.
  const double gradients = std::max(largest_.gradients, history_.gradients);
  const double ahead =
      data      ? *data
      : settled ? std::max(largest_.flips, history_.flipped ? walk_.forward_error() : 0)
      : updates && walk_.split_batch
          ? std::max({of_parts(entry), largest_.parameters, history_.forward, history_.noise})
      : updates ? std::max({walk_.forward_error(), gradients, gradients * gradients, largest_.rounded,
                            history_.noise})
                : std::max({walk_.forward_error(), derived ? largest_.rounded : 0, hidden, of_parts(entry),
                            walk_.unasked_error()});
  // Data are equal except for single elements; in float32, random numbers and scaling differ a little.
  const double made_in = derived
                             ? kFew * u
                             : std::max({unit_roundoff(target_.text(item.dtype)),
                                         unit_roundoff(golden_.text(partner.dtype)), kFew * kSingleRoundoff});
  const double users = updates ? type_of_users(index) : 0;
  const double own = std::max(made_in, users);
  if (share < 1 || users > made_in)
    walk_.out.explained[index] = static_cast<float>(walk_.threshold * (ahead + own) / share);
  Finding found =
      walk_.finding(entry, derived ? Kind::unrecorded : Kind::data, Rule::source, e / (ahead + own));
  if (walk_.is_shown(found.excess)) {
    const bool made = derived || !may_be_data(entry, index);
    found.kind = made ? Kind::unrecorded : Kind::data;
    const std::string origin =
        fmt::format("{} {}", place_text(target_, item),
                    made ? kFromUnrecorded : "comes from outside the recorded code and ");
    found.text = origin + difference_text(target_, item, golden_, partner, walk_.e_of(index));
    if (settled && !data && (largest_.forward > 0 || largest_.rounded > 0)) {
      found.text += "; integers do not differ by rounding";
      // An unrecorded decision may have made them.
      found.confidence = std::min(found.confidence, Confidence::likely);
    } else {
      found.text += fmt::format("; {}{} by at most {}", data ? "earlier data there" : "everything before it",
                                std::isinf(walk_.e_of(index)) ? " differs" : "", error_text(ahead));
    }
    if (found.is_evidence() && walk_.tensors && are_same_elements(index)) {
      found.text = fmt::format("{}has golden's elements in another order (error {})", origin,
                               error_text(walk_.e_of(index)));
    }
    if (made) {
      if (const std::string_view source = rearranged_from(entry, index); !source.empty())
        found.text += fmt::format(
            "; in both runs it has the norm of the output of {}, as if the code between them moved elements",
            source);
      else if (const std::string last = last_call_before(entry); !last.empty())
        found.text += fmt::format("; the last recorded call before it there is {}", last);
      const std::string module = module_that_makes(entry, index);
      const bool trained = item.requires_grad == dump::RequiresGrad::yes && !entry.optimizer;
      found.next = made_unrecorded(module, trained);
    }
    // Data may be wrong besides any other fault, but all wrong data come from one loader.
    found.joined = made ? is_tainted(entry, index) : data_differs_;
    data_differs_ = data_differs_ || (!made && found.is_evidence());
    const bool mask = made && found.is_evidence() && runs_.settle_mask(index, entry, e, ahead);
    if (mask || (made && found.is_evidence() && runs_.settle_between(0, entry, e, ahead, {}, index)))
      found.downstream = entry.touched = true;
  }
  offer(entry, index, std::move(found));
}

/// The last call of the entry's module before it: unrecorded code ran between the two or in one of them.
/// Empty where the module has no such call, or is not known.
std::string InputRule::last_call_before(const EntryPair& entry) const {
  const std::string module = walk_.module_around(entry.target, entry.golden);
  if (module.empty() || entry.optimizer) return {};
  constexpr std::uint32_t kMostBefore = 64;
  const std::uint32_t steps = std::min(entry.target, kMostBefore);
  for (std::uint32_t api = entry.target; entry.target - api < steps;) {
    const std::string around = walk_.module_around(--api, kNone);
    const bool within = around == module || around.starts_with(module + ".");
    if (within && !walk_.compound[api] && walk_.target.parsed_name(api).direction == dump::Direction::forward)
      return std::string(walk_.target_name(api));
  }
  return {};
}

/// The last entry before this one whose output has the same number of elements and the norm of the input on
/// both sides, as slices that are exchanged or rotated keep them; empty if no such entry exists.
std::string_view InputRule::rearranged_from(const EntryPair& entry, std::uint32_t index) const {
  constexpr std::uint32_t kMostBefore = 256;
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const auto alike = [](const dump::Side& side, const Item& a, const Item& b) {
    const double norm = number_of(side, b, dump::kNorm);
    return norm > 0 && elements_of(side.text(a.shape)) == elements_of(side.text(b.shape)) &&
           std::abs(number_of(side, a, dump::kNorm) - norm) <= kFew * kSingleRoundoff * norm;
  };
  const std::uint32_t steps = std::min(entry.target, kMostBefore);
  for (std::uint32_t api = entry.target; entry.target - api < steps;) {
    --api;
    if (!alignment_.has_golden(api) || walk_.compound[api]) continue;
    for (const std::uint32_t i : target_.apis[api].items()) {
      const Item& item = walk_.item_of(i);
      if (item.state != State::output || !item.is_tensor || errors_.golden_item[i] == kNone) continue;
      if (alike(target_, walk_.item_of(index), item) &&
          alike(golden_, partner, golden_.items[errors_.golden_item[i]]))
        return walk_.target_name(api);
    }
  }
  return {};
}

/// The innermost module around the entry that did not take the item itself as an input.
std::string InputRule::module_that_makes(const EntryPair& entry, std::uint32_t index) {
  std::string innermost = walk_.module_around(entry.target, entry.golden);
  if (walk_.construct == nullptr || innermost.empty()) return innermost;
  const std::uint64_t key = walk_.target_keys.of(index);
  for (const std::string_view around : walk_.construct->around(walk_.target_name(entry.target))) {
    const std::uint32_t module = errors_.entry_named(around);
    if (module == kNone) return innermost;
    if (!has_one_of(walk_.target_keys, module, State::input, {key})) return std::string(module_path(around));
  }
  return "the model";
}

/// Whether an input has golden's elements in another order. Their statistics then agree except for the order
/// in which sums were rounded.
bool InputRule::are_same_elements(std::uint32_t index) const {
  const std::uint32_t partner = errors_.golden_item[index];
  const measuring::Measure statistics = errors_.by_statistics_of(index, partner);
  return statistics.known && statistics.e <= kFew * kSingleRoundoff &&
         walk_.reading.same_elements(index, partner);
}

/// The size of the elements of an optimizer's input, divided by the largest size that its calls take there.
/// The gradient of a parameter without effect, as a key's bias in attention, is nothing but noise.
double InputRule::share_of_largest(const EntryPair& entry, std::uint32_t index) {
  const auto size_in = [](const dump::Side& side, const Item& item) {
    const double n = static_cast<double>(std::max<std::uint64_t>(elements_of(side.text(item.shape)), 1));
    return std::abs(number_of(side, item, dump::kNorm)) / std::sqrt(n);
  };
  const auto size_of = [&](const Item& item) { return size_in(golden_, item); };
  const auto place_of = [](std::string_view operation, std::string_view place) {
    return std::string(operation) + '\n' + std::string(place);
  };
  if (!largest_taken_) {
    largest_taken_.emplace();
    for (std::uint32_t api = 0; api < golden_.apis.size(); ++api) {
      const std::uint32_t partner = alignment_.target_of[api];
      if (partner == kNone || walk_.construct == nullptr) continue;
      const std::string_view name = walk_.target_name(partner);
      if (!dump::is_of_optimizer(walk_.construct->parent(name))) continue;
      const dump::EntryName parsed = walk_.target.parsed_name(partner);
      for (const std::uint32_t i : golden_.apis[api].items()) {
        const Item& item = golden_.items[i];
        if (item.state != State::input || !item.is_tensor || !std::isfinite(size_of(item))) continue;
        double& largest = (*largest_taken_)[place_of(parsed.operation(), place_text(golden_, item))];
        largest = std::max(largest, size_of(item));
      }
    }
  }
  const auto found =
      largest_taken_->find(place_of(entry.name.operation(), place_text(target_, walk_.item_of(index))));
  const double golden_size = size_of(golden_.items[errors_.golden_item[index]]);
  const bool vanishes = errors_.vanishes(index);
  const double size = vanishes ? std::max(golden_size, size_in(target_, walk_.item_of(index))) : golden_size;
  const double share = found == largest_taken_->end() ? 1 : size / found->second;
  // Rounding leaves no exact zero in all elements of what it alone makes.
  if (vanishes && share > kRightKernel) return 1;
  return std::isfinite(share) ? std::min(share, 1.0) : 1;
}

/// Judges the outputs of a module that come from entries inside it. Its other outputs are judged like those
/// of an operation (OutputRule).
void InputRule::examine_module_outputs(EntryPair& entry) {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::output || errors_.golden_item[i] == kNone) continue;
    const double e = walk_.e_of(i);
    if (e == 0 || (walk_.flipped && std::isinf(e))) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    const std::uint32_t golden_from = walk_.golden_flow.find(walk_.golden_keys.of(errors_.golden_item[i]));
    if (from != kNone || golden_from != kNone) judge_passed_on(entry, i, from, golden_from);
  }
}

/// `runs before Tensor.addcdiv_.0.forward, in golden after it` of a call that takes the output of another one
/// on one side, and on the other the tensor as it was before, like an average of weights that is updated
/// before the optimizer. Empty if the order of the two is the same.
std::string InputRule::other_order(const EntryPair& entry, std::uint32_t from,
                                   std::uint32_t golden_from) const {
  if ((from == kNone) == (golden_from == kNone)) return {};
  const bool ours = from != kNone;
  const std::uint32_t target =
      ours ? target_.items[from].api : alignment_.target_of[golden_.items[golden_from].api];
  const std::uint32_t golden =
      ours ? alignment_.golden_of[target_.items[from].api] : golden_.items[golden_from].api;
  if (target == kNone || golden == kNone || (target < entry.target) == (golden < entry.golden)) return {};
  return fmt::format("runs {} {}, in golden {} it", ours ? "after" : "before", walk_.target_name(target),
                     ours ? "before" : "after");
}

/// Judges an input, or the output of a module, that is `from` of the target and `golden_from` of golden;
/// kNone: that side has no such item.
void InputRule::judge_passed_on(EntryPair& entry, std::uint32_t index, std::uint32_t from,
                                std::uint32_t golden_from) {
  const Item& item = walk_.item_of(index);
  const double e = walk_.e_of(index) * (entry.optimizer ? share_of_largest(entry, index) : 1);
  const bool known = from != kNone;
  const bool golden_known = golden_from != kNone;
  const bool partners = known && golden_known &&
                        alignment_.golden_of[target_.items[from].api] == golden_.items[golden_from].api;
  // A cast keeps the rounding of the type that the value was computed in.
  double u = entry.u;
  if (known && !partners) u = std::max(u, unit_roundoff(target_.text(target_.items[from].dtype)));
  if (golden_known && !partners)
    u = std::max(u, unit_roundoff(golden_.text(golden_.items[golden_from].dtype)));
  if (entry.optimizer && !partners) u = std::max(u, type_of_users(index));
  if (partners && !walk_.tensors) return;  // then its error is the output's
  // Errors from statistics and errors from tensors cannot be compared with each other.
  if (partners && errors_.by_statistics[index] != errors_.by_statistics[from]) return;
  // Nothing is known of what calls compute inside modules that the other side records as a whole.
  if ((known && walk_.target_only.hides(target_.items[from].api)) ||
      (golden_known && walk_.golden_only.hides(golden_.items[golden_from].api)))
    return;
  // The step of another implementation of an optimizer is judged where its parameter is used.
  if ((known && alignment_.is_update_alone(target_.items[from].api)) ||
      (golden_known && alignment_.is_golden_update_alone(golden_.items[golden_from].api)))
    return;
  const double q = runs_.carried(from, golden_from);
  // The statistics of the maker may hide an error, as those of a half type do that are rounded to it.
  double unseen =
      std::max(known ? walk_.hidden_of(target_.items[from].api) : 0,
               golden_known ? walk_.hidden_of(alignment_.target_of[golden_.items[golden_from].api]) : 0);
  // The errors that calls carry on which one recorder leaves out are not known either.
  const bool left_out = (known && walk_.target_only.has(target_.items[from].api)) ||
                        (golden_known && walk_.golden_only.has(golden_.items[golden_from].api));
  if (left_out) unseen = std::max({unseen, largest_.rounded, walk_.unasked_error()});
  const bool unasked = left_out && walk_.unasked_error() > 0;
  if (entry.optimizer) unseen = std::max(unseen, of_parts(entry));
  // A module may compute its outputs by unrecorded code with other roundings; then only a clear change shows
  // more.
  const bool puts_out = item.state == State::output;
  const double ratio =
      e / (kMargin * std::max(q, unseen) + (puts_out ? walk_.threshold * kFew : kMargin) * u);
  // Entries that one side alone has are responsible for what comes from them.
  // Different operations for the same result have different roundings, and so does a scale that is not a
  // power of two.
  const double scaled = errors_.scale_at(entry.target) != nullptr ? kFew * u : 0;
  const double taken = std::max({q, unseen, runs_.trained_error(), scaled});
  const bool changed = ratio > 1 && e > kMargin * taken + kFew * u;
  const auto answers = [&](OneSidedRuns::Run* run) {
    if (run == nullptr) return false;
    run->consumed = true;
    // Other operations round differently, and so does another kernel for the same.
    const double kernel = run->target.empty() || run->golden.empty() ? 0 : kRightKernel;
    if (changed && e > std::max({kFew * run->u, kernel, runs_.of_steps(*run, u)})) {
      runs_.settle(*run, walk_.target_name(entry.target), e, q);
      entry.touched = true;
    }
    return true;
  };
  const bool alone =
      !walk_.other_operations && known && answers(runs_.run_of_target(target_.items[from].api));
  const bool golden_alone =
      !walk_.other_operations && golden_known && answers(runs_.run_of_golden(golden_.items[golden_from].api));
  if (alone || golden_alone) return;
  const bool certainly = !partners && ratio > 1 && !walk_.other_operations && !unasked;
  const bool fed = known && golden_known && !partners && !walk_.other_operations;
  Finding found = walk_.finding(entry, fed ? Kind::feed : Kind::unrecorded, Rule::source,
                                certainly ? walk_.threshold * ratio : ratio);
  const std::string_view producer =
      known ? walk_.target_name(target_.items[from].api) : walk_.golden_name(golden_.items[golden_from].api);
  if (walk_.is_shown(found.excess)) {
    const std::string place = place_text(target_, item);
    const std::string difference =
        difference_text(target_, item, golden_, golden_.items[errors_.golden_item[index]], e);
    if (const std::string order = other_order(entry, from, golden_from); !order.empty()) {
      found.kind = Kind::feed;
      found.text = fmt::format("{}; {} {}", order, place, difference);
      found.side = "the code differs, not a kernel";
      found.next = "compare the order of these calls on both sides";
    } else if (found.kind == Kind::feed) {
      found.text = fmt::format("{} comes from {}, in golden from {}; it {}", place, producer,
                               walk_.golden_name(golden_.items[golden_from].api), difference);
    } else if (walk_.other_operations) {
      found.text = fmt::format(
          "{} differs by {}, everything compared before it by at most {}; it was produced by {}, "
          "which has no partner",
          place, error_text(e), error_text(q), producer);
    } else {
      // A producer is known by its contents: unrecorded code changed nothing between it and the entry.
      const std::string origin =
          partners ? fmt::format("unrecorded code between {} and {} changed {}", producer,
                                 puts_out ? "its end" : "this entry", place)
          : known  ? fmt::format("{} comes from {}, in golden from unrecorded code", place, producer)
                   : fmt::format("{} comes from unrecorded code, in golden from {}", place, producer);
      found.text = std::isinf(e) || unasked
                       ? fmt::format("{}; it {}", origin, difference)
                       : fmt::format("{}; error {} there, {} here", origin, error_text(q), error_text(e));
    }
  }
  // A tensor that the producer made of evidence is downstream. The change itself is not, unless its cause is
  // known.
  found.downstream = history_.evidence || (unasked && walk_.any_evidence);
  const std::uint32_t maker =
      known ? target_.items[from].api : alignment_.target_of[golden_.items[golden_from].api];
  if (maker != kNone && found.is_evidence() && runs_.settle_between(maker, entry, e, q))
    found.downstream = entry.touched = true;
  // Unrecorded code of a module may have taken a wrong input of the module.
  found.joined = found.joined || (!fed && is_wrong_in(walk_.module_around(entry.target, entry.golden)));
  offer(entry, index, std::move(found));
}

bool InputRule::is_wrong_in(std::string_view module) const {
  return std::any_of(walk_.out.findings.begin(), walk_.out.findings.end(), [&](const Finding& each) {
    return each.is_evidence() && each.rule == Rule::source && each.module == module;
  });
}

/// Offers what the code shows, however large the error.
void InputRule::offer_code(EntryPair& entry, std::uint32_t index, std::string text, std::string next) {
  Finding found = walk_.finding(entry, Kind::feed, Rule::source, measuring::kInfinite);
  found.text = std::move(text);
  found.side = "the code differs, not a kernel";
  found.next = std::move(next);
  offer(entry, index, std::move(found));
}

void InputRule::offer(EntryPair& entry, std::uint32_t index, Finding found) {
  found.item = index;
  found.place = place_text(target_, walk_.item_of(index));
  walk_.offer(entry, std::move(found));
}

/// The place where a tensor comes in without a recorded parameter: the module, the operation, the argument.
std::uint64_t InputRule::data_place(const EntryPair& entry, std::uint32_t index) const {
  if (walk_.construct == nullptr || walk_.item_of(index).requires_grad != dump::RequiresGrad::no) return 0;
  const std::string_view path = module_path(walk_.construct->parent(walk_.target_name(entry.target)));
  if (path.empty()) return 0;
  return std::hash<std::string>{}(
      fmt::format("{}\n{}\n{}", path, entry.name.operation(), place_text(target_, walk_.item_of(index))));
}

void InputRule::know_data(const EntryPair& entry, std::uint32_t index) {
  const std::uint64_t place = data_place(entry, index);
  if (place != 0 && history_.data_errors.size() < kMostDataPlaces)
    history_.data_errors.try_emplace(place, static_cast<float>(walk_.e_of(index)));
}

/// The error of the data that came in at the same place before.
std::optional<double> InputRule::data_error(const EntryPair& entry, std::uint32_t index) const {
  const auto known = history_.data_errors.find(data_place(entry, index));
  return known == history_.data_errors.end() ? std::nullopt : std::optional<double>(known->second);
}

/// Whether an input of the optimizer is a gradient that a backward gave on both sides: its error was judged
/// there.
bool InputRule::is_judged_gradient(std::uint32_t index, std::uint32_t partner) const {
  const std::uint32_t from = walk_.gradient_items.find(walk_.target_keys.of(index));
  return from != ContentMap::kUnknown &&
         walk_.golden_keys.of(errors_.golden_item[from]) == walk_.golden_keys.of(partner);
}

/// Whether an input may be data: all modules around the entry take it, or a tensor of which it may be a part.
/// Trained tensors and inputs of an optimizer are not data.
bool InputRule::may_be_data(const EntryPair& entry, std::uint32_t index) {
  if (walk_.item_of(index).requires_grad == dump::RequiresGrad::yes || walk_.equal_inputs) return false;
  if (walk_.construct == nullptr) return true;
  constexpr std::uint32_t kMostInputs = 256;
  std::uint64_t key = walk_.target_keys.of(index);
  for (const std::string_view around : walk_.construct->around(walk_.target_name(entry.target))) {
    const std::uint32_t module = errors_.entry_named(around);
    if (module == kNone) {
      if (module_path(around).empty()) return false;  // `optimizer`
      continue;
    }
    errors_.measure(module);
    const Api& api = target_.apis[module];
    std::uint32_t handed = kNone;
    for (std::uint32_t i = api.first; i < api.first + std::min(api.count, kMostInputs); ++i) {
      const Item& item = walk_.item_of(i);
      if (!item.is_tensor || item.state != State::input) continue;
      const std::uint64_t own = walk_.target_keys.of(i);
      if (key != 0 && own == key) {
        handed = i;
        break;
      }
      const bool from_outside = item.requires_grad != dump::RequiresGrad::yes && walk_.e_of(i) > 0 &&
                                walk_.target_flow.find(own) == ContentMap::kUnknown;
      if (from_outside && handed == kNone) handed = i;
    }
    if (handed == kNone) return false;
    key = walk_.target_keys.of(handed);
  }
  return true;
}

/// Whether an input of unknown origin may have its error from evidence.
bool InputRule::is_tainted(const EntryPair& entry, std::uint32_t index) const {
  if (!walk_.any_evidence && parameters_.first() == nullptr) return false;
  const double clean = walk_.any_evidence ? walk_.clean : parameters_.before_first();
  return walk_.e_of(index) > walk_.threshold * (clean + entry.u);
}

}  // namespace msprobe::diagnosis
