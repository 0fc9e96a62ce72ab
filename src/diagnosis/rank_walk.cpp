// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rank_walk.hpp"

#include "dump/side.hpp"
#include "measuring/rank_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/code_bases.hpp"
#include "diagnosis/communication_rule.hpp"
#include "diagnosis/drift.hpp"
#include "diagnosis/other_code.hpp"
#include "diagnosis/rank_notes.hpp"
#include "diagnosis/rank_origins.hpp"
#include "diagnosis/sentences.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::State;

}  // namespace

RankWalk::RankWalk(const measuring::MeasuredRank& rank, const DiagnosisOptions& options,
                   const std::vector<std::string>& framework_frames, SecondReading& reading, History& history,
                   const MeasureEntry& measure_entry)
    : walk_(rank, options, framework_frames, reading, history, measure_entry) {
  defer_gradients();
  defer_first_passes();
}

RankDiagnosis RankWalk::run() {
  const auto entries = static_cast<std::uint32_t>(walk_.target.apis.size());
  training_.compare_tied();
  for (std::uint32_t api = 0; api < entries && !walk_.out.stopped; ++api) {
    walk_.out.looked_at = api + 1;
    walk_.errors.measure(api);
    if (walk_.deferred.contains(api)) continue;
    judge(api);
    if (const auto found = deferred_to_.find(api); found != deferred_to_.end()) {
      for (const std::uint32_t each : found->second) judge(each);
    }
  }
  if (walk_.out.stopped) {
    walk_.out.left_out = entries - walk_.out.looked_at;
    note_communication_left_out(walk_, walk_.out.looked_at);
  } else {
    runs_.advance_golden(static_cast<std::uint32_t>(walk_.golden.apis.size()));
    runs_.close_run();
  }
  finish();
  return std::move(walk_.out);
}

void RankWalk::judge(std::uint32_t api) {
  const dump::EntryName parsed = walk_.target.parsed_name(api);
  const bool forward = parsed.direction == Direction::forward;
  walk_.at = api;
  if (!walk_.alignment.has_golden(api)) {
    if (!forward) return;
    if (walk_.split_batch && walk_.split_batch->has(api, parsed.base))
      walk_.split_batch->outputs.put_outputs(walk_.target_keys, api, false);
    else
      runs_.target_alone(api);
    return;
  }
  walk_.before = std::max(walk_.largest.forward, walk_.largest.backward);
  EntryPair entry;
  entry.target = api;
  entry.golden = walk_.alignment.golden_of[api];
  entry.name = parsed;
  entry.nature = pairing::nature_of(parsed.operation());
  entry.compound = walk_.compound[api];
  entry.communication = walk_.target.calls.contains(walk_.target_name(api));
  if (walk_.construct != nullptr)
    entry.optimizer = dump::is_of_optimizer(walk_.construct->parent(walk_.target_name(api)));
  if (walk_.part_updates && entry.optimizer) {
    walk_.errors.leave_out(api);
    return;
  }
  if (walk_.split_batch && forward && !entry.optimizer) runs_.advance_golden(entry.golden);
  if (walk_.is_part(entry)) {
    part_of_batch(entry);
    return;
  }
  const auto is_inside = [&] { return walk_.equivalent_modules.is_inside(walk_.target_name(api)); };
  const auto leave_out = [&] {
    walk_.leave_out(api, kMargin * (walk_.forward_error() + walk_.errors.u[api]) + kRightKernel);
  };
  const bool inside = is_inside();
  const auto largest = walk_.largest;
  if (inside) leave_out();
  if (forward) {
    forward_pair(entry);
  } else if (parsed.direction == Direction::backward) {
    gradients_.examine_backward(entry);
    unexplained_.examine(entry);
  } else if (parsed.direction == Direction::parameters_grad) {
    gradients_.examine_parameters(entry);
  } else {
    return;
  }
  finish_entry(entry);
  // A gradient that its module does not hand on explains no later error.
  if (!forward && !inside && is_inside()) {
    walk_.largest = largest;
    walk_.reached[api] = {};
    leave_out();
  }
  walk_.out.stopped = walk_.options.first && may_stop(entry);
}

void RankWalk::defer(std::uint32_t api, std::uint32_t place) {
  walk_.deferred[api] = place;
  deferred_to_[place].push_back(api);
}

/// Defers gradients of parameters: releases of the Python tool before 26 write them next to the module's
/// forward entry, although they exist only after its last backward. Those that have the number of a pass
/// belong to the next backward.
void RankWalk::defer_gradients() {
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> waiting;
  std::unordered_map<std::string_view, std::uint32_t> last;
  for (std::uint32_t api = 0; api < walk_.target.apis.size(); ++api) {
    const dump::EntryName parsed = walk_.target.parsed_name(api);
    if (!parsed.is_module) continue;
    if (parsed.direction == Direction::parameters_grad && !last.contains(parsed.base))
      waiting[parsed.base].push_back(api);
    if (parsed.direction != Direction::backward) continue;
    last[parsed.base] = api;
    const auto gradients = waiting.find(parsed.base);
    if (gradients == waiting.end()) continue;
    std::erase_if(gradients->second, [&](std::uint32_t each) {
      const bool numbered = !walk_.target.parsed_name(each).call.empty();
      if (numbered) defer(each, api);
      return numbered;
    });
  }
  for (const auto& [module, gradients] : waiting) {
    const auto place = last.find(module);
    if (place == last.end()) continue;
    for (const std::uint32_t api : gradients) defer(api, place->second);
  }
}

/// Defers backward entries through which a second pass goes, as that of a loss of forces, which are gradients
/// themselves: recorders leave an entry at the place of the first pass, with the values of the last. A
/// gradient that only the backward of a later call gives cannot have arrived before that call, nor can what
/// follows from it.
void RankWalk::defer_first_passes() {
  const auto is_backward = [&](std::uint32_t api) {
    return walk_.target.parsed_name(api).direction == Direction::backward;
  };
  const std::uint32_t first = first_backward(walk_.target);
  const std::uint32_t last = behind_backward(walk_.target);
  std::uint32_t called = first;
  while (called < last && walk_.target.parsed_name(called).direction != Direction::forward) ++called;
  if (called == last) return;
  ContentMap first_given;
  for (std::uint32_t api = last; api-- > first;)
    if (is_backward(api)) first_given.put_outputs(walk_.target_keys, api, false);
  for (std::uint32_t api = first; api < last; ++api) {
    if (!is_backward(api) || walk_.deferred.contains(api)) continue;
    const std::uint32_t forward = walk_.errors.forward_of(api);
    if (forward == pairing::kNone) continue;
    for (const std::uint32_t i : walk_.target.apis[api].items()) {
      if (walk_.item_of(i).state != State::input) continue;
      const std::uint32_t from = first_given.find(walk_.target_keys.of(i));
      if (from == ContentMap::kUnknown || walk_.item_of(from).api <= api) continue;
      const std::uint32_t maker = walk_.item_of(from).api;
      const std::uint32_t later = walk_.errors.forward_of(maker);
      if (later == pairing::kNone || later <= api) continue;
      for (std::uint32_t each = api; each < later; ++each) {
        if (!is_backward(each) || walk_.deferred.contains(each)) continue;
        const std::uint32_t own = walk_.errors.forward_of(each);
        if (own != pairing::kNone && own <= forward) defer(each, maker);
      }
      break;
    }
  }
}

void RankWalk::forward_pair(EntryPair& entry) {
  runs_.advance_golden(entry.golden);
  if (!entry.compound) runs_.close_run();
  const bool begins = walk_.construct != nullptr && walk_.last_paired != pairing::kNone &&
                      !dump::is_of_optimizer(walk_.construct->parent(walk_.target_name(walk_.last_paired)));
  walk_.updates += entry.optimizer && begins ? 1 : 0;
  const bool another = entry.optimizer ? parameters_.is_of_another(entry) : parameters_.is_of_part(entry);
  rewrites_.examine(entry);
  walk_.measure_inputs(entry);
  inputs_.follow(entry);
  if (!entry.compound && !another) calls_.examine(entry);
  if (!another) inputs_.examine(entry);
  if (entry.communication) {
    note_communication(walk_, entry);
  } else if (entry.compound) {
    inputs_.examine_module_outputs(entry);
    outputs_.examine_module(entry);
  } else if (entry.noise) {
    for (const std::uint32_t i : walk_.target.apis[entry.target].items())
      walk_.out.explained[i] = std::numeric_limits<float>::infinity();
  } else {
    outputs_.examine(entry);
  }
  // A view that no later call reads may be of memory that the program has not written yet.
  if (entry.best && entry.best->is_evidence() && pairing::is_view(entry.name.operation()) &&
      !walk_.is_read(entry)) {
    entry.best.reset();
    walk_.errors.leave_out(entry.target);
    entry.e_in = entry.e_out = entry.worst_in = 0;
  }
  calls_.recall_shape(entry);
  make_good(entry);
  const bool explained = !unexplained_.examine(entry);
  runs_.look(entry);
  walk_.target_flow.put_outputs(walk_.target_keys, entry.target, entry.compound);
  if (walk_.golden_next == entry.golden) {
    walk_.golden_flow.put_outputs(walk_.golden_keys, entry.golden, entry.compound);
    ++walk_.golden_next;
  }
  walk_.last_paired = entry.target;
  walk_.noisy[entry.target] = entry.noise;
  parameters_.remember_noise(entry);
  running_.remember(entry);
  if (entry.noise) walk_.largest.noise = std::max(walk_.largest.noise, std::min(entry.e_out, 1.0));
  walk_.reached[entry.target].join(entry.upstream);
  if (explained && !entry.noise) {
    // The extremes of a periodic function are the same whatever the errors of its arguments make of the rest.
    const bool hides = entry.nature == dump::Nature::periodic && !walk_.tensors;
    const double error = std::min(std::max(entry.e_out, hides ? entry.grown * entry.worst_in : 0), 1.0);
    walk_.largest.forward = std::max(walk_.largest.forward, error);
    walk_.reached[entry.target].join({error, false});
  }
  const double hidden = walk_.hidden_of(entry.target);
  const bool rounded = entry.u > measuring::kSingleRoundoff && hidden >= entry.u;
  if (rounded) walk_.largest.rounded = std::max(walk_.largest.rounded, hidden);
  if (entry.e_out > 0 || rounded) walk_.largest.coarsest = std::max(walk_.largest.coarsest, entry.u);
  walk_.history.coarsest = std::max(walk_.history.coarsest, entry.u);
  for (const std::uint32_t i : walk_.target.apis[entry.target].items())
    walk_.trained = walk_.trained || (walk_.item_of(i).state == State::output &&
                                      walk_.item_of(i).requires_grad == dump::RequiresGrad::yes);
}

/// Judges an entry that computes only a part of the batch: only its parameters can be compared.
void RankWalk::part_of_batch(EntryPair& entry) {
  for (const std::uint32_t i : walk_.target.apis[entry.target].items()) {
    const dump::Item& item = walk_.item_of(i);
    const auto position = pairing::position_of(walk_.target, item);
    const bool takes_parameter = item.state == State::input && position &&
                                 pairing::is_parameter_position(entry.name.operation(), *position);
    if (item.state != State::parameters && !takes_parameter) walk_.errors.e[i] = NAN;
  }
  walk_.errors.output[entry.target] = 0;
  if (entry.name.direction != Direction::forward) return;
  // The outputs of parts are unknown on both sides.
  walk_.split_batch->outputs.put_outputs(walk_.target_keys, entry.target, false);
  walk_.split_batch->golden_outputs.put_outputs(walk_.golden_keys, entry.golden, false);
  walk_.split_batch->entries.insert(entry.target);
  if (walk_.golden_next == entry.golden) ++walk_.golden_next;
  if (!entry.compound) runs_.close_run();
  walk_.measure_inputs(entry);
  walk_.history.coarsest = std::max(walk_.history.coarsest, entry.u);
  inputs_.examine(entry);
  if (const SplitBatch& split = *walk_.split_batch; entry.target == split.first && split.share != 1) {
    Finding found = walk_.finding(entry, Kind::shape, Rule::structure, measuring::kInfinite);
    found.text = fmt::format(
        "computes {} parts of the batch where golden computes {}, and all of them have {:.3g} times as many "
        "elements as golden's: some rows are left out or computed twice",
        split.target, split.golden, split.share);
    found.confidence = Confidence::certain;
    found.side = "the code differs, not a kernel";
    found.next = "compare how the code divides the batch, and whether it runs every part";
    walk_.offer(entry, std::move(found));
  }
  finish_entry(entry);
}

/// Evidence does not count in a module that hands on the same tensors as golden's.
void RankWalk::make_good(EntryPair& entry) {
  if (!entry.best || !entry.best->is_evidence()) return;
  walk_.make_good(*entry.best, entry.target, {}, walk_.before);
  if (entry.best->is_evidence()) return;
  walk_.leave_out(entry.target, kMargin * (walk_.forward_error() + entry.u) + kRightKernel);
  entry.e_in = entry.e_out = entry.worst_in = 0;
}

void RankWalk::finish_entry(EntryPair& entry) {
  make_good(entry);
  buffers_.explain(entry);
  if (entry.best) {
    walk_.name_places(*entry.best, entry.target, entry.golden);
    enclosing_.name(*entry.best, entry);
    entry.touched = entry.touched || entry.best->is_evidence();
    walk_.keep(std::move(*entry.best), walk_.before);
  }
  walk_.touched[entry.target] = entry.touched;
}

bool RankWalk::may_stop(const EntryPair& entry) const {
  const bool forward = entry.name.direction == Direction::forward;
  if (forward && runs_.any_waits()) return false;
  if (walk_.any_certain) return true;
  const Finding* const parameter = parameters_.first();
  if (parameter == nullptr || parameter->confidence != Confidence::certain) return false;
  // After a step, the optimizer may be the cause, which shows only in all parameters together, where they are
  // used.
  return walk_.history.steps == 0 || !forward;
}

void RankWalk::finish() {
  // The entries after a stop might show an effect.
  if (!walk_.out.stopped) runs_.settle_gradients();
  parameters_.finish();
  running_.finish();
  if (!walk_.out.stopped) training_.compare_optimizers();
  suspects_.name();
  if (!walk_.out.stopped) {
    runs_.finish();
    buffers_.finish();
    suspects_.remember(walk_.out.findings);
  }
  note_drift(walk_);
  std::stable_sort(walk_.out.findings.begin(), walk_.out.findings.end(),
                   [](const Finding& a, const Finding& b) {
                     return std::make_tuple(!a.is_evidence(), a.order, a.rule) <
                            std::make_tuple(!b.is_evidence(), b.order, b.rule);
                   });
  for (Finding& found : walk_.out.findings) {
    if (found.next.empty()) {
      Finding named = found;
      const std::string name = argument_text(walk_.target, found.entry, found.place);
      if (name.ends_with(')')) named.place = name;  // the place alone is a number
      found.next = advice(named, walk_.out.tensors);
    }
    calls_.count_repeated(found);
  }
  for (const auto& [order, excess] : walk_.records) {
    if (order < walk_.fault_order) walk_.out.largest_before = excess;
  }
  if (walk_.out.findings.size() > kMostFindings) walk_.out.findings.resize(kMostFindings);
  take_notes(walk_);
  find_origins(walk_);
  walk_.out.golden_item = std::move(walk_.errors.golden_item);
  walk_.out.coverage = measuring::coverage_of(walk_.rank, walk_.out.golden_item, walk_.out.looked_at);
  walk_.out.error = std::move(walk_.errors.e);
  if (walk_.out.stopped && walk_.out.left_out > 0) {
    // Tensors that were measured early, after the stop, were not judged.
    const std::uint32_t end = walk_.target.apis[walk_.out.looked_at].first;
    std::fill(walk_.out.error.begin() + static_cast<std::ptrdiff_t>(end), walk_.out.error.end(), NAN);
  }
  walk_.history.forward = std::max(walk_.history.forward, walk_.largest.forward);
  walk_.history.backward = std::max(walk_.history.backward, walk_.largest.backward);
  walk_.history.gradients = std::max(walk_.history.gradients, walk_.largest.gradients);
  walk_.history.noise = std::max(walk_.history.noise, walk_.largest.noise);
  walk_.history.evidence = walk_.history.evidence || walk_.fault_order != UINT64_MAX;
  walk_.history.certain = walk_.history.certain || walk_.any_certain;
  walk_.history.clean = walk_.clean;
  walk_.history.flipped = walk_.history.flipped || walk_.flipped;
  ++walk_.history.steps;
}

const Finding* RankFindings::finding_of(std::uint32_t target_api) const {
  const auto found = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& each) { return each.target_api == target_api; });
  return found == findings.end() ? nullptr : &*found;
}

RankDiagnosis diagnose(const measuring::MeasuredRank& rank, const DiagnosisOptions& options,
                       const std::vector<std::string>& framework_frames, RankHistory& past,
                       const diagnosis::NoiseFloor* noise, const MeasureEntry& measure_entry) {
  FileReading reading(rank, past.before.get(), noise, framework_frames);
  if (!past.history.precision) past.history.precision = rank.precision;
  if (options.two_code_bases) return diagnose_code_bases(rank, framework_frames, past.history);
  const bool layouts = are_two_layouts(rank);
  History before;
  if (layouts || past.history.steps == 0) before = past.history;
  RankDiagnosis found = RankWalk(rank, options, framework_frames, reading, past.history, measure_entry).run();
  // Differences that come with another layout are not evidence if everything that it computes is the same.
  const auto count = [&](Origin origin) { return found.counts[static_cast<std::size_t>(origin)]; };
  const bool little = count(Origin::equal) + count(Origin::rounding) < count(Origin::not_compared);
  if (layouts && (found.evidence > 0 || little)) {
    found = diagnose_layouts(rank, std::move(found), framework_frames, past.history, before);
  } else if (!layouts && found.evidence > 0) {
    found = unless_it_computes_the_same(rank, std::move(found), framework_frames, past.history, before);
  }
  found.broken_off = reading.unread();
  found.first_broken_off = reading.first_unread();
  for (std::size_t i = 0; i < rank.metrics.size(); ++i) {
    const measuring::TensorMetrics& metrics = rank.metrics[i];
    const bool failed = metrics.failed && metrics.status == measuring::MetricStatus::unsupported;
    // Where no tensor was recorded, there was nothing to read.
    const bool recorded = failed && rank.target_item(rank.rows[i]).data_name != 0 &&
                          rank.golden_item(rank.rows[i]).data_name != 0;
    found.unread += recorded ? 1 : 0;
  }
  return found;
}

}  // namespace msprobe::diagnosis
