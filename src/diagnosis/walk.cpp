// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/compounds.hpp"
#include "diagnosis/drift.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "dump/tree.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::State;
using measuring::kSingleRoundoff;
using measuring::unit_roundoff;
using pairing::kNone;

/// The forward of a backward, or of gradients of parameters: the line of its call is theirs. Empty for
/// others.
std::string forward_of(std::string_view entry) {
  const auto name = dump::parse_entry_name(entry);
  if (!name || (name->direction != Direction::backward && name->direction != Direction::parameters_grad))
    return {};
  return name_in(*name, "forward");
}

/// The number of the step folder in a path; nothing if the path has no such folder.
std::optional<std::int64_t> step_of(const std::string& json) {
  for (const std::filesystem::path& part : std::filesystem::path(json)) {
    if (const auto number = dump::number_after(part.string(), "step")) return number;
  }
  return std::nullopt;
}

/// Whether the models' inputs are equal, except for the rounding of sums. Unknown inputs do not count as
/// equal.
bool are_equal(const std::vector<dump::ModelInput>& ours, const std::vector<dump::ModelInput>& theirs) {
  const auto same = [](const dump::ModelInput& a, const dump::ModelInput& b) {
    if (a.shape != b.shape) return false;
    const double size = std::max(std::abs(b.numbers[0]), std::abs(b.numbers[1]));
    for (std::size_t i = 0; i < a.numbers.size(); ++i) {
      const double scale = i == 3 ? std::abs(b.numbers[i]) : size;
      if (!(std::abs(a.numbers[i] - b.numbers[i]) <= kFew * kSingleRoundoff * scale)) return false;
    }
    return true;
  };
  return !ours.empty() && std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), same);
}

const dump::ConstructTable* table_of(const std::shared_ptr<const dump::ConstructBeside>& construct) {
  return construct ? &construct->table() : nullptr;
}

}  // namespace

Walk::Walk(const measuring::MeasuredRank& measured, const DiagnosisOptions& asked,
           const std::vector<std::string>& frames, SecondReading& second, History& past,
           const MeasureEntry& measure_entry)
    : rank(measured),
      options(asked),
      framework_frames(frames),
      reading(second),
      construct(table_of(rank.target_construct)),
      golden_construct(table_of(rank.golden_construct)),
      step(step_of(rank.target.json)),
      golden_step(step_of(rank.golden.json)),
      target(rank.target),
      golden(rank.golden),
      alignment(*rank.alignment),
      history(past),
      errors(rank, *history.precision, options.first, measure_entry),
      equivalent_modules(rank, errors),
      target_only(target, golden, construct, golden_construct),
      golden_only(golden, target, golden_construct, construct),
      target_keys(target, !options.first),
      golden_keys(golden, !options.first),
      threshold(rank.mode == measuring::Mode::tensor ? kThresholdTensors : kThresholdStatistics),
      other_operations(pairing::of_other_operations(target, golden)),
      tensors(rank.mode == measuring::Mode::tensor),
      equal_inputs(are_equal(target.header.training.inputs, golden.header.training.inputs)),
      touched(target.apis.size()),
      noisy(target.apis.size()),
      untouched(target.items.size()),
      unexplained(target.items.size()),
      reached(target.apis.size()),
      consumers(target.apis.size()) {
  out.step = rank.step;
  out.rank = rank.rank;
  out.number = rank.number;
  out.tensors = tensors;
  out.threshold = threshold;
  out.explained.resize(target.items.size(), NAN);
  if (history.evidence) {
    fault_order = 0;
    clean = history.clean;
  }
  mark_compounds(*this);
  dtype_setting = diagnosis::dtype_setting(target, golden, errors.golden_item);
  split_batch = diagnosis::split_batch(target, golden, alignment, construct, golden_construct);
  part_updates = diagnosis::part_updates(target, construct, golden, golden_construct);
  for (std::uint32_t i = 0; i < target.items.size(); ++i) {
    if (item_of(i).state == State::parameters) parameter_items.put(target_keys.of(i), i);
  }
  for (std::uint32_t i = 0; i < golden.items.size(); ++i) {
    if (golden.items[i].state == State::parameters) golden_parameter_items.put(golden_keys.of(i), i);
    if (golden.items[i].state == State::parameters_grad) golden_gradient_items.put(golden_keys.of(i), i);
  }
  // This is not the first step of the runs, so that training came before it.
  if (history.steps == 0 && step.value_or(0) != 0 && golden_step.value_or(0) != 0) assess_drift(*this);
}

std::uint64_t Walk::order_of(std::uint32_t api) const {
  const auto behind = deferred.find(api);
  return 2 * std::uint64_t{behind == deferred.end() ? api : behind->second} + 1;
}

bool Walk::is_part(const EntryPair& entry) const {
  if (!split_batch || entry.optimizer || entry.target < split_batch->first) return false;
  if (split_batch->repeated.contains(entry.name.base)) return true;
  if (entry.name.direction == Direction::backward &&
      split_batch->entries.contains(errors.forward_of(entry.target)))
    return true;
  for (const std::uint32_t i : target.apis[entry.target].items()) {
    const std::uint32_t partner = errors.golden_item[i];
    if (item_of(i).is_tensor && partner != kNone &&
        measuring::elements_of(target.text(item_of(i).shape)) !=
            measuring::elements_of(golden.text(golden.items[partner].shape)))
      return true;
    // A call that takes a part's output in both runs is a part, too, as the mean of its sum.
    if (item_of(i).state == State::input && partner != kNone &&
        split_batch->outputs.find(target_keys.of(i)) != ContentMap::kUnknown &&
        split_batch->golden_outputs.find(golden_keys.of(partner)) != ContentMap::kUnknown)
      return true;
  }
  return false;
}

std::string Walk::error_at(std::uint32_t target_api, double error) const {
  if (std::isinf(error) && target_api != kNone) {
    for (const std::uint32_t i : target.apis[target_api].items()) {
      if (errors.golden_item[i] == kNone || !std::isinf(e_of(i))) continue;
      return fmt::format(
          "{} {}", pairing::place_text(target, item_of(i)),
          difference_text(target, item_of(i), golden, golden.items[errors.golden_item[i]], error));
    }
  }
  return "error " + error_text(error);
}

double Walk::forward_error() const {
  return std::max({largest.forward, largest.parameters, history.forward, largest.flips});
}

double Walk::any_error() const {
  return std::max({forward_error(), largest.backward, history.backward, largest.gradients, history.gradients,
                   largest.updated, largest.rounded, drift ? drift->largest : 0});
}

/// The error that an entry may have received: statistics of one tensor may hide most of an error that they
/// show upstream of it.
double Walk::floor_of(const EntryPair& entry) const {
  if (tensors) return entry.e_in;
  return std::max({entry.e_in, drift ? drift->quarter : 0, entry.upstream.error / kMargin,
                   largest.updated / kFew, largest.coarsest / kFew});
}

Upstream Walk::anything_seen() const {
  return {std::max({largest.forward, largest.backward, largest.flips}), fault_order != UINT64_MAX};
}

bool Walk::is_of_whole_numbers(std::uint32_t item) const {
  const auto is_whole = [&](dump::Statistic which) {
    const double number = measuring::number_of(target, item_of(item), which);
    return number == std::floor(number);
  };
  return is_whole(dump::kMax) && is_whole(dump::kMin);
}

bool Walk::is_clean(std::uint32_t item) const {
  const double u = unit_roundoff(target.text(item_of(item).dtype));
  const bool shows = errors.blind[item] == 0 && u > 0 && u <= kSingleRoundoff && !is_of_whole_numbers(item);
  return shows && errors.e[item] == 0;
}

/// The largest error that the statistics of an entry's outputs may hide.
double Walk::hidden_of(std::uint32_t target_api) const {
  double hidden = 0;
  if (target_api == kNone || target_api > at) return hidden;
  for (const std::uint32_t i : target.apis[target_api].items()) {
    if (item_of(i).state == State::output) hidden = std::max(hidden, static_cast<double>(errors.hidden[i]));
  }
  return hidden;
}

bool Walk::checksums_differ(std::uint32_t index) const {
  const std::uint32_t partner = errors.golden_item[index];
  if (partner == kNone || !std::isnan(errors.e[index])) return false;
  const Item& other = golden.items[partner];
  return item_of(index).has_checksum && other.has_checksum &&
         target.text(item_of(index).checksum) != golden.text(other.checksum);
}

bool Walk::input_checksums_differ(const EntryPair& entry) const {
  for (const std::uint32_t i : target.apis[entry.target].items()) {
    if (item_of(i).state != State::output && item_of(i).is_tensor && checksums_differ(i)) return true;
  }
  return false;
}

double Walk::unasked_error() const {
  if (!target_only.is_limited() && !golden_only.is_limited()) return 0;
  const double u = std::max({target_only.coarsest(), golden_only.coarsest(), history.coarsest});
  return std::max({kRightKernel, is_half(u) ? kFew * u : 0, history.steps > 0 ? trained_rounding(u) : 0});
}

void Walk::measure_inputs(EntryPair& entry) const {
  for (const std::uint32_t i : target.apis[entry.target].items()) {
    const Item& item = item_of(i);
    if (!item.is_tensor || errors.golden_item[i] == kNone || item.state == State::output) continue;
    if (noise_alone.contains(i)) continue;
    entry.e_in = std::max(entry.e_in, e_of(i));
    entry.b_in = std::max(entry.b_in, static_cast<double>(errors.b[i]));
    if (!pairing::is_elementwise(entry.name.operation())) continue;
    const double n =
        static_cast<double>(std::max<std::uint64_t>(measuring::elements_of(target.text(item.shape)), 1));
    entry.spread = std::max(entry.spread, std::min(e_of(i), 1.0) / std::sqrt(n));
  }
  entry.u = errors.u[entry.target] > 0 ? errors.u[entry.target] : kSingleRoundoff;
  if (pairing::is_recurrent(entry.name.operation())) entry.u *= kFar;
  entry.worst_in = entry.e_in;
  entry.hidden = errors.anything_hidden[entry.target];
  entry.e_out = errors.output[entry.target];
}

std::string Walk::module_around(std::uint32_t target_api, std::uint32_t golden_api) const {
  const std::string_view name = target_api != kNone ? target_name(target_api) : golden_name(golden_api);
  std::string_view around = name;
  if (!name.starts_with("Module.") && !name.starts_with("Cell.")) {
    around = {};
    if (target_api == kNone && golden_construct != nullptr) around = golden_construct->parent(name);
    if (target_api != kNone && construct != nullptr) around = construct->parent(name);
  }
  const std::string_view path = pairing::module_path(around);
  return std::string(path.empty() && around != name ? around : path);
}

void Walk::name_places(Finding& found, std::uint32_t target_api, std::uint32_t golden_api) const {
  found.step = out.step;
  found.rank = out.rank;
  found.target_api = target_api;
  if (golden_api != kNone) found.golden_entry = golden_name(golden_api);
  found.entry = target_api != kNone ? target_name(target_api) : golden_name(golden_api);
  found.module = module_around(target_api, golden_api);
  const std::string forward = forward_of(found.entry);
  if (target_api == kNone) {
    std::string frame = reading.golden_line(found.entry);
    if (frame.empty() && !forward.empty()) frame = reading.golden_line(forward);
    found.where = frame.empty() ? frame : std::string(kInGolden) + frame;
  } else if (target.stacks) {
    const auto* frames = target.stacks->find(found.entry);
    if (frames == nullptr && !forward.empty()) frames = target.stacks->find(forward);
    if (frames != nullptr) found.where = dump::user_frame(*frames, framework_frames);
  }
}

Finding Walk::finding(const EntryPair& entry, Kind kind, Rule rule, double excess) const {
  Finding found;
  found.kind = kind;
  found.rule = rule;
  // Infinite errors from infinite inputs say nothing.
  if (std::isnan(excess)) excess = 0;
  found.excess = excess;
  found.u = entry.u;
  found.order = order_of(entry.target);
  found.target_api = entry.target;  // names follow if it is kept
  const bool by_values = rule == Rule::introduced || rule == Rule::gain || kind == Kind::dtype ||
                         kind == Kind::shape || kind == Kind::requires_grad;
  found.downstream = entry.touched || history.evidence;
  found.apart = !entry.upstream.open;
  found.joined = by_values && entry.tainted;
  const bool sure = kind == Kind::replay || (rule == Rule::source && excess >= kMany * threshold);
  const bool by_size = rule == Rule::introduced || rule == Rule::gain || kind == Kind::gradient ||
                       kind == Kind::unrecorded || kind == Kind::feed;
  // The errors of parameters that have drifted apart are not independent, so that an operation that adds them
  // up may show more. So may values after an update that follows the signs of gradients, or that are rounded
  // to half types: single elements are off.
  const bool behind_update =
      !tensors && history.steps > 0 &&
      (entry.name.direction != Direction::forward || entry.optimizer || rule == Rule::introduced);
  const bool drifted = (drift && drift->median > 0) || behind_update;
  const double least = drifted && by_values ? kMargin * threshold : threshold;
  // An optimizer that computes in another type treats small gradients differently.
  const bool other_type = dtype_setting && entry.optimizer && by_values;
  const bool weak = excess < least || other_type || (drift && by_size && before >= kHalf);
  found.confidence = weak ? Confidence::hint : sure ? Confidence::certain : Confidence::likely;
  // After a decision that noise flipped, everything differs, and nothing is evidence.
  if (flipped && entry.touched && !any_evidence) found.confidence = Confidence::hint;
  return found;
}

bool Walk::is_read(const EntryPair& view) const {
  constexpr std::uint32_t kMostBehind = 256;
  auto given = contents_in(target_keys, view.target, State::output);
  const auto end = std::min<std::size_t>(target.apis.size(), std::size_t{view.target} + 1 + kMostBehind);
  for (std::uint32_t api = view.target + 1; api < end; ++api) {
    const std::string_view name = target_name(api);
    const dump::EntryName parsed = target.parsed_name(api);
    if (target.calls.contains(name) || parsed.direction != dump::Direction::forward) continue;
    bool takes = false;
    bool reads = false;
    for (const std::uint32_t i : target.apis[api].items()) {
      if (item_of(i).state != State::input || !given.contains(target_keys.of(i))) continue;
      takes = true;
      const bool written =
          pairing::only_writes(parsed.operation()) && target.name(item_of(i)).ends_with(".input.0");
      reads = reads || !written;
    }
    if (takes && pairing::is_view(parsed.operation())) {
      given.merge(contents_in(target_keys, api, State::output));
    } else if (reads) {
      return true;
    }
  }
  return false;
}

void Walk::remember(std::uint32_t api, double excess) {
  if (!(excess > out.largest_excess) || excess >= threshold) return;
  records.emplace_back(order_of(api), excess);
  out.largest_excess = excess;
  out.largest_entry = target_name(api);
}

bool Walk::is_too_small(const EntryPair& entry, Rule rule, double excess) {
  if (excess >= hint()) return false;
  if (!options.without.contains(rule)) remember(entry.target, excess);
  return true;
}

/// One line an entry: evidence before hints, then by rule, then the largest.
void Walk::offer(EntryPair& entry, Finding found) {
  if (options.without.contains(found.rule)) return;
  if (found.rule != Rule::structure && !found.is_evidence()) {
    remember(entry.target, found.excess);
    if (found.excess < hint() && found.kind != Kind::decision && found.kind != Kind::checksum) return;
  }
  const auto key = [](const Finding& each) {
    return std::make_tuple(!each.is_evidence(), each.rule, -each.excess);
  };
  if (!entry.best || key(found) < key(*entry.best)) entry.best = std::move(found);
}

/// `ahead`: the largest error before it.
void Walk::keep(Finding found, double ahead) {
  if (options.without.contains(found.rule)) return;
  make_good(found, found.target_api, found.golden_entry, ahead);
  if (found.is_evidence()) {
    ++out.evidence;
    if (fault_order == UINT64_MAX) clean = ahead;
    fault_order = std::min(fault_order, found.order);
    any_evidence = true;
    any_certain = any_certain || found.confidence == Confidence::certain;
  }
  const auto weak = [](const Finding& each) { return !each.is_evidence() || each.downstream || each.joined; };
  // Evidence that is downstream of other evidence, and hints, are only kept while there is room.
  if (out.findings.size() < kMostFindings || !weak(found)) out.findings.push_back(std::move(found));
  if (out.findings.size() < 2 * kMostFindings) return;
  const auto last = std::find_if(out.findings.rbegin(), out.findings.rend(), weak);
  full = last == out.findings.rend();
  out.findings.erase(full ? out.findings.end() - 1 : last.base() - 1);
}

void Walk::make_good(Finding& found, std::uint32_t target_api, std::string_view golden_entry, double ahead) {
  if (!found.is_evidence() || history.evidence) return;
  const EquivalentModules::Ahead rounded{std::max({ahead, history.coarsest, kAlike / kMargin}), true, true,
                                         true};
  // The gradients of one pass are parts of those of several, each of which rounds by itself.
  if (alignment.has_other_passes() && target_api != kNone &&
      target.parsed_name(target_api).direction != Direction::forward &&
      equivalent_modules.are_gradients_equal(
          {std::max(rounded.error, kMargin * history.coarsest), true, true, true})) {
    found.text +=
        "; one run has more backward passes, after which the gradients of all parameters are the same";
    found.confidence = Confidence::hint;
    return;
  }
  // Where runs have drifted apart, tensors that modules hand on are never the same.
  if (drift) return;
  switch (found.kind) {
    case Kind::parameter:
    case Kind::data:
    case Kind::gain:
    case Kind::optimizer:
    case Kind::replay:
    case Kind::random:
    case Kind::communication:
    case Kind::checksum:
    case Kind::unexplained:
      return;
    default:
      break;
  }
  // One side may reduce, scale or clip gradients in another way.
  const std::string_view entry = target_api == kNone ? std::string_view() : target_name(target_api);
  if (equivalent_modules.is_on_way_of_same_gradients(entry, golden_entry, found.order, {.error = ahead})) {
    found.text += "; the optimizer takes the same gradients";
    found.confidence = Confidence::hint;
    return;
  }
  // Rounding may hide the effect of a difference that is not certain, but not of another value.
  const bool grad = found.kind == Kind::requires_grad;
  const bool other_value = found.kind == Kind::dtype && found.item != kNone && target_api != kNone &&
                           e_of(found.item) > threshold * std::max<double>(found.u, kSingleRoundoff);
  if (found.rule == Rule::structure && found.confidence != Confidence::certain && !grad && !other_value)
    return;
  // Different operations for the same result have different roundings.
  const bool unlike = found.kind == Kind::argument && takes_other_inputs(target_api);
  const bool other_calls = found.kind == Kind::added || found.kind == Kind::removed ||
                           found.kind == Kind::exchanged || found.kind == Kind::unrecorded ||
                           found.kind == Kind::feed || unlike;
  const bool structure = found.rule == Rule::structure && (found.kind != Kind::argument || unlike);
  const EquivalentModules::Ahead seen{ahead, other_calls, structure || other_calls};
  if (const std::string module = equivalent_modules.around(entry, golden_entry, seen); !module.empty()) {
    found.text += fmt::format("; the output of {} is the same", module);
  } else if (const std::string taken =
                 other_calls ? equivalent_modules.takers(entry, golden_entry, seen) : "";
             !taken.empty()) {
    found.text += fmt::format("; only modules take its result whose output is the same, the first {}", taken);
  } else if (grad && equivalent_modules.are_gradients_equal(seen)) {
    // A gradient that nothing is trained by does no harm, as that of embeddings which are frozen.
    found.text += "; the gradients of all parameters are the same";
  } else if (grad && equivalent_modules.are_gradients_equal(rounded)) {
    // A custom function has its own backward, which rounds in another way.
    found.text += fmt::format("; the gradients of all parameters agree within {}",
                              error_text(kMargin * rounded.error + kRightKernel));
  } else {
    // An argument of a loss may matter in a later step, and gradients may change after the backward.
    // So may averages of weights, on whichever side they are updated after it.
    const bool golden_behind = target_api != kNone && alignment.has_golden(target_api) &&
                               alignment.golden_of[target_api] >= behind_backward(golden);
    if ((found.kind == Kind::argument && !unlike) ||
        found.order >= 2 * std::uint64_t{behind_backward(target)} || golden_behind ||
        !equivalent_modules.is_step_equal(seen))
      return;
    found.text += "; the gradients of all parameters are the same";
  }
  found.confidence = Confidence::hint;
}

bool Walk::takes_other_inputs(std::uint32_t target_api) {
  if (target_api == kNone) return false;
  errors.measure(target_api);
  for (const std::uint32_t i : target.apis[target_api].items()) {
    if (item_of(i).state == State::input && item_of(i).is_tensor && e_of(i) > kNoisy) return true;
  }
  return false;
}

bool Walk::is_made_good(const EntryPair& entry) {
  if (history.evidence || drift) return false;
  const std::string_view name = target_name(entry.target);
  return equivalent_modules.is_on_way_of_same_gradients(name, {}, order_of(entry.target),
                                                        {.error = before}) ||
         !equivalent_modules.around(name, {}, {.error = before, .other_calls = true}).empty();
}

void Walk::leave_out(std::uint32_t target_api, double limit) {
  for (const std::uint32_t i : target.apis[target_api].items()) {
    if (errors.e[i] > limit) leave_out_item(i);
  }
}

void Walk::leave_out_item(std::uint32_t item) {
  errors.e[item] = NAN;
  errors.b[item] = 0;
  const std::uint32_t api = item_of(item).api;
  if (rewritten++ == 0) first_rewritten = target_name(api);
  errors.output[api] = 0;
  for (const std::uint32_t i : target.apis[api].items()) {
    const bool puts_out =
        item_of(i).state == State::output && unit_roundoff(target.text(item_of(i).dtype)) > 0;
    if (puts_out) errors.output[api] = std::max(errors.output[api], static_cast<float>(e_of(i)));
  }
}

/// Turns a hint whose effect was seen into certain evidence.
void Walk::confirm(Finding found, double ahead) {
  touched[found.target_api] = true;
  std::erase_if(out.findings, [&](const Finding& other) {
    return other.target_api == found.target_api && other.kind == found.kind;
  });
  found.confidence = Confidence::certain;
  keep(std::move(found), ahead);
}

/// Notes that a decision flipped: the values that follow differ without a fault.
void Walk::flip(EntryPair& entry, double error) {
  flipped = true;
  entry.touched = true;
  largest.flips = std::max(largest.flips, std::min(error, 1.0));
  entry.upstream.error = std::max(entry.upstream.error, std::min(error, 1.0));
}

}  // namespace msprobe::diagnosis
