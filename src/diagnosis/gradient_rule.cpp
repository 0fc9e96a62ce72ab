// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/gradient_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/sentences.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "dump/side.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Item;
using dump::Nature;
using dump::State;
using measuring::elements_of;
using measuring::kSingleRoundoff;
using measuring::number_of;
using measuring::sizes_of;
using pairing::kNone;

/// The norm under one of the names of a parameter, which an optimizer knows by the first alone. NaN: none.
double norm_of_any(const dump::Training& training, const std::map<std::string, double>& norms,
                   const std::string& name) {
  if (const auto own = norms.find(name); own != norms.end()) return own->second;
  for (const auto& names : training.tied.value_or(std::vector<std::vector<std::string>>{})) {
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    for (const std::string& other : names) {
      if (const auto found = norms.find(other); found != norms.end()) return found->second;
    }
  }
  return NAN;
}

}  // namespace

std::uint64_t gradient_key(std::string_view module, std::string_view item_name) {
  return std::hash<std::string>{}(fmt::format("{}.{}", module, dump::split_last(item_name).second));
}

/// The norm of a gradient: golden's, or this run's where golden's is exactly zero.
double GradientRule::norm_of(std::uint32_t index) const {
  const double norm = std::abs(number_of(golden_, golden_.items[errors_.golden_item[index]], dump::kNorm));
  return norm == 0 ? std::abs(number_of(target_, walk_.item_of(index), dump::kNorm)) : norm;
}

/// The part of a sum's terms that is left of it. Where one side is exactly zero and the other more than
/// rounding leaves of a sum that cancels, the error counts in full: rounding hits no zero in all elements.
double GradientRule::left_of(double terms, std::uint32_t index) const {
  const double left = std::min(1.0, norm_of(index) / terms);
  if (!errors_.vanishes(index)) return left;
  return left > walk_.threshold * kRightKernel ? 1 : 0;
}

/// The factor for the error of a gradient. It is less than 1 where the sum that makes the gradient cancels.
double GradientRule::gradient_scale(const EntryPair& entry, std::uint32_t index) {
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const double norm = norm_of(index);
  const std::vector<std::uint64_t> sizes = sizes_of(golden_.text(partner.shape));
  double gradient = 0;
  double elements = 0;
  double input = 0;
  if (entry.name.direction == dump::Direction::parameters_grad) {
    const ModuleErrors* module = errors_.module(entry.name.base);
    if (module == nullptr || !module->has_gradient) return share_of_gradients(index);
    gradient = module->gradient_norm;
    elements = static_cast<double>(module->gradient_elements);
    input = module->input_norm;
  } else {
    const std::uint32_t forward = errors_.forward_of(entry.target);
    const bool saved = forward != kNone && alignment_.has_golden(forward);
    if (saved && pairing::is_softmax(entry.name.operation()))
      return softmax_scale(entry, alignment_.golden_of[forward], index);
    if (saved) {
      if (const auto spread_out = broadcast_scale(entry, alignment_.golden_of[forward], index))
        return *spread_out;
    }
    // Where the call was not recorded, a vector can only be that of a bias or of a norm's parameters.
    const bool is_parameter = saved ? has_parameter_like(entry, alignment_.golden_of[forward], partner, input)
                                    : sizes.size() == 1 && pairing::takes_parameters(entry.name.operation());
    if (!is_parameter) return 1;
    for (const std::uint32_t i : golden_.apis[entry.golden].items()) {
      const Item& item = golden_.items[i];
      if (item.state != State::input || !item.is_tensor) continue;
      gradient = std::hypot(gradient, number_of(golden_, item, dump::kNorm));
      elements += static_cast<double>(elements_of(golden_.text(item.shape)));
    }
  }
  // Partial sums grow as they are added up one by one.
  double scale = sizes.size() == 1 && sizes[0] > 0
                     ? gradient * std::sqrt(std::max(1.0, elements / static_cast<double>(sizes[0])))
                     : gradient;
  if (sizes.size() >= 2 && input > 0 && sizes[0] > 0)
    scale = gradient * input / std::sqrt(std::max(1.0, elements / static_cast<double>(sizes[0])));
  if (!std::isfinite(scale) || !std::isfinite(norm) || scale <= 0) return 1;
  return left_of(scale, index);
}

/// The size of the elements of a parameter's gradient, divided by the largest size in this step. Where no
/// gradient inside the module was recorded, nothing else shows that a gradient is noise, as that of the bias
/// of attention's keys, or of a convolution before a batch norm, is.
double GradientRule::share_of_gradients(std::uint32_t index) {
  const auto size_of = [&](const Item& item) {
    const double n = static_cast<double>(elements_of(golden_.text(item.shape)));
    const double norm = number_of(golden_, item, dump::kNorm);
    return n > 0 && std::isfinite(norm) ? norm / std::sqrt(n) : 0;
  };
  if (!largest_gradient_) {
    largest_gradient_ = 0;
    for (const Item& item : golden_.items) {
      if (item.is_tensor && item.state == State::parameters_grad)
        largest_gradient_ = std::max(*largest_gradient_, size_of(item));
    }
  }
  const double size = size_of(golden_.items[errors_.golden_item[index]]);
  return size > 0 ? size / *largest_gradient_ : 1;
}

/// Whether one of the call's parameters has this shape. `input` gets the norm of the first input that is not
/// a parameter.
bool GradientRule::has_parameter_like(const EntryPair& entry, std::uint32_t golden_forward,
                                      const Item& gradient, double& input) const {
  bool found = false;
  const Api& call = golden_.apis[golden_forward];
  for (const std::uint32_t i : call.items()) {
    const Item& item = golden_.items[i];
    if (item.state != State::input || !item.is_tensor) continue;
    const auto position = pairing::position_of(golden_, item);
    const bool role = position && pairing::is_parameter_position(entry.name.operation(), *position);
    if (role && golden_.text(item.shape) == golden_.text(gradient.shape)) found = true;
    if (!role && input == 0) input = std::abs(number_of(golden_, item, dump::kNorm));
  }
  return found;
}

/// The factor for the gradient of an operand that an elementwise operation repeats. Such a gradient is a sum,
/// which may cancel; nothing for other gradients.
std::optional<double> GradientRule::broadcast_scale(const EntryPair& entry, std::uint32_t golden_forward,
                                                    std::uint32_t index) const {
  if (!pairing::is_elementwise(entry.name.operation()) || entry.nature == Nature::division)
    return std::nullopt;
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const bool product = entry.nature != Nature::sum;
  const std::uint64_t elements = elements_of(golden_.text(partner.shape));
  double gradient = 0;
  for (const std::uint32_t i : golden_.apis[entry.golden].items()) {
    const Item& item = golden_.items[i];
    if (item.state != State::input || !item.is_tensor) continue;
    if (elements_of(golden_.text(item.shape)) <= elements) return std::nullopt;
    gradient = std::hypot(gradient, number_of(golden_, item, dump::kNorm));
  }
  double factor = 1;  // of a product: the size of what the gradient is multiplied by
  if (product) {
    factor = 0;
    for (const std::uint32_t i : golden_.apis[golden_forward].items()) {
      const Item& item = golden_.items[i];
      if (item.state != State::input) continue;
      const double norm = std::abs(number_of(golden_, item, item.is_tensor ? dump::kNorm : dump::kMax));
      const double n = static_cast<double>(std::max<std::uint64_t>(elements_of(golden_.text(item.shape)), 1));
      if (golden_.text(item.shape) != golden_.text(partner.shape))
        factor = std::max(factor, norm / std::sqrt(n));
    }
  }
  const double scale = gradient * factor;
  if (!std::isfinite(scale) || !std::isfinite(norm_of(index)) || scale <= 0) return std::nullopt;
  return left_of(scale, index);
}

/// The factor for the gradient of a softmax y of the gradient g: y * (g - sum(g * y)) cancels where g hardly
/// differs within a row. Its terms are at most the largest y times g; those of log_softmax are g. A mask in
/// g, where y is 0, is far larger than its other elements: of both extremes the smaller one limits the size
/// of g.
double GradientRule::softmax_scale(const EntryPair& entry, std::uint32_t golden_forward,
                                   std::uint32_t index) const {
  double gradient = 0;
  for (const std::uint32_t i : golden_.apis[entry.golden].items()) {
    const Item& item = golden_.items[i];
    if (item.state != State::input || !item.is_tensor) continue;
    const auto size_of = [&](dump::Statistic which) { return std::abs(number_of(golden_, item, which)); };
    const double n = static_cast<double>(elements_of(golden_.text(item.shape)));
    gradient = std::hypot(
        gradient,
        std::min(size_of(dump::kNorm), std::sqrt(n) * std::min(size_of(dump::kMax), size_of(dump::kMin))));
  }
  double largest = 0;
  for (const std::uint32_t i : golden_.apis[golden_forward].items()) {
    const Item& item = golden_.items[i];
    if (item.state != State::output || !item.is_tensor) continue;
    for (const dump::Statistic which : {dump::kMax, dump::kMin})
      largest = std::max(largest, std::abs(number_of(golden_, item, which)));
  }
  const double terms = gradient * std::min(largest, 1.0);
  return std::isfinite(terms) && terms > 0 && std::isfinite(norm_of(index)) ? left_of(terms, index) : 1;
}

/// The rounding that a parameter's gradient collects while it is added up row by row.
double GradientRule::accumulated(const EntryPair& entry, std::uint32_t index) {
  const Item& partner = golden_.items[errors_.golden_item[index]];
  const std::vector<std::uint64_t> sizes = sizes_of(golden_.text(partner.shape));
  if (sizes.empty() || sizes[0] == 0) return 0;
  double elements = 0;
  if (entry.name.direction == dump::Direction::parameters_grad) {
    const ModuleErrors* module = errors_.module(entry.name.base);
    if (module != nullptr) elements = static_cast<double>(module->gradient_elements);
  } else {
    for (const std::uint32_t i : golden_.apis[entry.golden].items()) {
      if (golden_.items[i].state == State::input && golden_.items[i].is_tensor)
        elements += static_cast<double>(elements_of(golden_.text(golden_.items[i].shape)));
    }
    // An output as large as what came in is no sum.
    if (static_cast<double>(elements_of(golden_.text(partner.shape))) >= elements && sizes.size() == 1)
      return 0;
  }
  const double rows = elements / static_cast<double>(sizes[0]);
  return rows > 1 ? kSingleRoundoff * std::sqrt(rows) : 0;
}

/// The error compared with the best partner of the same shape, since nodes of autograd may list their outputs
/// in another order.
double GradientRule::best_match(const EntryPair& entry, std::uint32_t index, double enough) const {
  double best = walk_.e_of(index);
  if (best <= enough) return best;
  const Item& item = walk_.item_of(index);
  const Api& api = golden_.apis[entry.golden];
  constexpr std::uint32_t kMostOutputs = 16;
  for (std::uint32_t i = api.first; i < api.first + std::min(api.count, kMostOutputs); ++i) {
    const Item& other = golden_.items[i];
    if (other.state != State::output || !other.is_tensor || i == errors_.golden_item[index]) continue;
    if (golden_.text(other.shape) != target_.text(item.shape)) continue;
    const measuring::Measure against = errors_.by_statistics_of(index, i);
    if (against.known && against.e < best) best = against.e;
  }
  return best;
}

/// Whether the two backward entries belong to calls that are not partners.
bool GradientRule::is_of_other_call(const EntryPair& entry, std::uint32_t forward) const {
  if (entry.name.is_module || !alignment_.has_golden(forward)) return false;
  const dump::EntryName partner = walk_.golden.parsed_name(alignment_.golden_of[forward]);
  const dump::EntryName golden = walk_.golden.parsed_name(entry.golden);
  return partner.base != golden.base || partner.call != golden.call;
}

/// Describes the cause of a gradient that arrives wrong: the only call that takes the output, if its own
/// gradient is right and the gradient that it sends back is not recorded. Empty if no such call exists.
std::string GradientRule::wrong_backward(std::uint32_t forward, double ahead, double onset) const {
  constexpr std::uint32_t kMostBehind = 64;
  const auto given = contents_in(walk_.target_keys, forward, State::output);
  std::uint32_t taker = kNone;
  const auto end = std::min<std::size_t>(target_.apis.size(), std::size_t{forward} + 1 + kMostBehind);
  for (std::uint32_t api = forward + 1; api < end; ++api) {
    if (walk_.compound[api] || walk_.target.parsed_name(api).direction != dump::Direction::forward) continue;
    if (!has_one_of(walk_.target_keys, api, State::input, given)) continue;
    if (taker != kNone) return {};
    taker = api;
  }
  const std::uint32_t backward = taker == kNone ? kNone : paths_.backward_of(taker);
  if (backward == kNone || backward >= walk_.at) return {};
  bool arrives = false;
  for (const std::uint32_t i : target_.apis[backward].items()) {
    if (walk_.item_of(i).state == State::output && walk_.item_of(i).is_tensor) return {};
    if (walk_.item_of(i).state != State::input || std::isnan(errors_.e[i])) continue;
    if (errors_.e[i] > walk_.threshold * (std::max(ahead, onset / kMargin) + kSingleRoundoff)) return {};
    arrives = true;
  }
  if (!arrives) return {};
  const dump::EntryName name = walk_.target.parsed_name(taker);
  const bool draws = pairing::nature_of(name.operation()) == Nature::random;
  return fmt::format(
      "; {}.{} uses that output and its own gradient is right: its backward, whose results are not "
      "recorded, is wrong{}",
      name.base, name.call,
      draws ? ", or draws other random numbers than its forward (recomputed or compiled code)" : "");
}

/// A backward takes the outputs of other backwards and the inputs of its forward. A gradient that is the
/// output of none is the sum of those that the consumers of its forward's output sent back.
Upstream GradientRule::upstream_of(const EntryPair& entry, std::uint32_t forward) const {
  Upstream upstream = forward == kNone ? walk_.anything_seen() : walk_.reached[forward];
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input || !walk_.item_of(i).is_tensor) continue;
    const std::uint32_t from = walk_.gradient_items.find(walk_.target_keys.of(i));
    if (from != ContentMap::kUnknown) {
      upstream.join(walk_.reached[walk_.item_of(from).api]);
      continue;
    }
    if (walk_.is_clean(i)) continue;
    bool all = forward != kNone && !walk_.consumers[forward].empty();
    Upstream sum;
    for (std::size_t k = 0; all && k < walk_.consumers[forward].size(); ++k) {
      const std::uint32_t backward = backward_of_[walk_.consumers[forward][k]];
      all = backward != kNone;
      if (all) sum.join(walk_.reached[backward]);
    }
    upstream.join(all ? sum : walk_.anything_seen());
  }
  return upstream;
}

void GradientRule::examine_backward(EntryPair& entry) {
  paths_.show();
  const std::uint32_t forward = errors_.forward_of(entry.target);
  if (forward != kNone) backward_of_[forward] = entry.target;
  entry.upstream = upstream_of(entry, forward);
  walk_.reached[entry.target] = entry.upstream;
  if (forward != kNone) errors_.measure(forward);
  if (forward != kNone) rewrites_.examine_backward(entry.target, forward);
  if (forward != kNone && is_of_other_call(entry, forward)) {
    for (const std::uint32_t i : target_.apis[entry.target].items()) errors_.e[i] = NAN;
    return;
  }
  walk_.measure_inputs(entry);
  if (forward != kNone && walk_.touched[forward]) entry.touched = true;
  const double ahead =
      std::max({walk_.forward_error(), largest_.backward, history_.backward, entry.upstream.error});
  if (walk_.any_evidence && entry.e_in > walk_.threshold * (walk_.clean + entry.u)) entry.touched = true;
  // Where half types are used, their rounding may begin anywhere between two recorded gradients.
  const double onset = std::max(entry.u, history_.coarsest);
  const Api& api = target_.apis[entry.target];
  const Api& other = golden_.apis[entry.golden];
  if (!entry.compound) {
    for (const std::uint32_t i : api.items()) {
      if (walk_.item_of(i).state != State::input || std::isnan(errors_.e[i])) continue;
      if (forward != kNone) calls_.show_effect(entry, forward, walk_.e_of(i), ahead, ahead, onset);
      const double excess = walk_.e_of(i) / (std::max(ahead, onset / kMargin) + entry.u + kRightKernel);
      if (walk_.is_too_small(entry, Rule::source, excess)) continue;
      Finding found = walk_.finding(entry, Kind::gradient, Rule::source, excess);
      found.item = i;
      found.place = pairing::place_text(target_, walk_.item_of(i));
      const std::string born =
          std::isinf(walk_.e_of(i))
              ? non_finite_text(target_, walk_.item_of(i), golden_, golden_.items[errors_.golden_item[i]])
              : std::string();
      found.text =
          fmt::format("the gradient of its output arrives with {}; everything before it has at most {}",
                      born.empty() ? "error " + error_text(walk_.e_of(i)) : born, error_text(ahead));
      if (found.is_evidence() && !found.downstream) {
        if (forward != kNone && runs_.settle_behind(forward, entry, walk_.e_of(i), ahead))
          entry.touched = true;
        paths_.missing_backward(entry, walk_.e_of(i), ahead);
        found.downstream = entry.touched;
        if (forward != kNone && !entry.touched) found.text += wrong_backward(forward, ahead, onset);
      }
      walk_.offer(entry, std::move(found));
    }
    if (forward != kNone) {
      entry.u = std::max(entry.u, static_cast<double>(errors_.u[forward]));
      entry.e_in = std::max(entry.e_in, static_cast<double>(errors_.anything[forward]));
      entry.hidden = std::max(entry.hidden, static_cast<double>(errors_.anything_hidden[forward]));
      // The elements whose distance from the kink is less than their error change sides, with all of their
      // gradient.
      if (entry.nature == Nature::kinked)
        entry.e_in =
            std::max(entry.e_in, std::sqrt(std::min(1.0, static_cast<double>(errors_.anything[forward]))));
      entry.b_in = std::max(entry.b_in, static_cast<double>(errors_.anything_b[forward]));
    }
    entry.e_in = walk_.floor_of(entry);
    if (!walk_.tensors) entry.e_in = std::max(entry.e_in, history_.coarsest / kFew);
    if (forward == kNone) entry.e_in = std::max(entry.e_in, ahead);
    entry.worst_in = entry.e_in;
    std::uint32_t ours = 0;
    std::uint32_t theirs = 0;
    for (const std::uint32_t i : api.items()) ours += walk_.item_of(i).state == State::output ? 1 : 0;
    for (const std::uint32_t i : other.items()) theirs += golden_.items[i].state == State::output ? 1 : 0;
    for (const std::uint32_t i : api.items()) {
      const Item& item = walk_.item_of(i);
      if (item.state != State::output || !item.is_tensor || std::isnan(errors_.e[i])) continue;
      if (ours != theirs) {  // kernels with other graphs: which output is which is not known
        errors_.e[i] = NAN;
        continue;
      }
      walk_.gradient_items.put(walk_.target_keys.of(i), i);
      const std::string_view dtype = target_.text(item.dtype);
      const std::string_view golden_dtype = golden_.text(golden_.items[errors_.golden_item[i]].dtype);
      const bool setting = walk_.dtype_setting && walk_.dtype_setting->is(dtype, golden_dtype);
      if (!setting && !measuring::same_dtype(dtype, golden_dtype)) {
        if (forward != kNone) calls_.show_effect(entry, forward, walk_.e_of(i), entry.e_in, ahead, onset);
        continue;
      }
      const double scale = gradient_scale(entry, i);
      if (scale == 0) continue;
      const double e = scale * best_match(entry, i, walk_.threshold * (entry.e_in + entry.u));
      const double b = e < scale * walk_.e_of(i) ? 0 : scale * errors_.b[i];
      largest_.backward = std::max(largest_.backward, std::min(e, 1.0));
      // The terms of a softmax hand on their errors to what is left of them, however small that is.
      const double left = forward != kNone && pairing::is_softmax(entry.name.operation()) ? scale : 1;
      walk_.reached[entry.target].join(
          {std::min(std::max(e, (entry.e_in + entry.u) * (1 / left - 1)), 1.0), false});
      largest_.gradients = std::max(largest_.gradients, std::min(walk_.e_of(i), kFar));
      if (forward != kNone) calls_.show_effect(entry, forward, e, entry.e_in, ahead, onset);
      outputs_.judge(entry, i, e, b, {}, accumulated(entry, i));
    }
  }
}

void GradientRule::examine_parameters(EntryPair& entry) {
  paths_.show();
  walk_.measure_inputs(entry);
  const ModuleErrors* module = errors_.module(entry.name.base);
  const double ahead = std::max({walk_.forward_error(), largest_.backward, history_.backward});
  entry.e_in = module != nullptr ? module->e : 0;
  if (module != nullptr) entry.u = std::max(entry.u, module->u);
  entry.b_in = module != nullptr ? module->b : 0;
  if (module != nullptr) entry.hidden = std::max(entry.hidden, module->hidden);
  if (module == nullptr || !module->has_gradient) entry.e_in = std::max(entry.e_in, ahead);
  entry.upstream = walk_.anything_seen();
  if (module != nullptr && module->has_gradient) {
    entry.upstream = {};
    for (const std::uint32_t each : module->entries) entry.upstream.join(walk_.reached[each]);
  }
  entry.e_in = walk_.floor_of(entry);
  if (paths_.any_cut()) entry.e_in = std::max(entry.e_in, history_.coarsest / kFew);
  entry.worst_in = entry.e_in;
  if (walk_.any_evidence && entry.e_in > walk_.threshold * (walk_.clean + entry.u)) entry.touched = true;
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (!walk_.item_of(i).is_tensor || std::isnan(errors_.e[i]) || errors_.golden_item[i] == kNone) continue;
    const bool explained = explanations_.explains(entry, i);
    if (!explained && is_reduced_otherwise(entry, i)) {
      walk_.leave_out_item(i);
      continue;
    }
    walk_.gradient_items.put(walk_.target_keys.of(i), i);
    largest_.gradients = std::max(largest_.gradients, std::min(walk_.e_of(i), kFar));
    trace(entry, i);
    if (explained) continue;
    const double scale = gradient_scale(entry, i);
    if (scale == 0) continue;
    largest_.backward = std::max(largest_.backward, std::min(scale * walk_.e_of(i), 1.0));
    outputs_.judge(entry, i, scale * walk_.e_of(i), scale * errors_.b[i], {}, accumulated(entry, i));
  }
  if (entry.best && entry.best->is_evidence() && entry.best->kind != Kind::gradient && agreed_before(entry)) {
    entry.best->text +=
        "; it agrees after the pass before: if the gradients of this step's backward passes accumulate, "
        "compare how they are cleared, scaled, reduced or replaced between them";
    entry.best->joined = std::exchange(changed_between_, true);
  }
}

/// Remembers a gradient for the next step.
void GradientRule::trace(const EntryPair& entry, std::uint32_t index) {
  const dump::Item& item = walk_.item_of(index);
  const dump::Item& golden_item = golden_.items[errors_.golden_item[index]];
  if (!taken_tensors_) taken_tensors_.emplace(target_, golden_);
  history_.gradient_traces[gradient_key(entry.name.base, target_.name(item))] = {
      .error = errors_.e[index],
      .target_mean = number_of(target_, item, dump::kMean),
      .golden_mean = number_of(golden_, golden_item, dump::kMean),
      .target_taken = taken_tensors_->first.mean_of(pairing::name_in_model(target_, item), item),
      .golden_taken =
          taken_tensors_->second.mean_of(pairing::name_in_model(golden_, golden_item), golden_item)};
}

/// Whether a gradient that accumulates in a step differs on the way, while the optimizer takes the same. One
/// side may reduce it over ranks after every pass, the other after the last.
bool GradientRule::is_reduced_otherwise(const EntryPair& entry, std::uint32_t index) {
  const double limit = walk_.threshold * (entry.e_in + entry.u);
  if (entry.name.call == "0" || walk_.e_of(index) <= limit) return false;
  if (!taken_) taken_ = taken_norms(target_, golden_);
  if (!taken_) return false;
  const std::string name = pairing::name_in_model(target_, walk_.item_of(index));
  const double our_norm = norm_of_any(target_.header.training, taken_->first, name);
  const double their_norm = norm_of_any(golden_.header.training, taken_->second, name);
  return std::abs(our_norm - their_norm) <= limit * their_norm;
}

/// Whether earlier passes of the step added to the gradient, and it was equal after the pass before.
bool GradientRule::agreed_before(const EntryPair& entry) const {
  std::uint32_t call = 0;
  std::from_chars(entry.name.call.data(), entry.name.call.data() + entry.name.call.size(), call);
  if (call == 0 || entry.worst_in > walk_.threshold * (walk_.clean + entry.u)) return false;
  const std::uint32_t before =
      errors_.entry_named(fmt::format("{}.parameters_grad.{}", entry.name.base, call - 1));
  if (before == kNone || !alignment_.has_golden(before)) return false;
  for (const std::uint32_t i : target_.apis[before].items()) {
    if (walk_.e_of(i) > walk_.threshold * (walk_.clean + entry.u)) return false;
  }
  return true;
}

}  // namespace msprobe::diagnosis
