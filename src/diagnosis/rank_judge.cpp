// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/rank_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "diagnosis/limits.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/structure.hpp"
#include "dump/tree.hpp"
#include "pairing/roles.hpp"
#include "support/parallel.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;

/// What takes the gradients of all parameters, as the Python tool calls it in construct.json.
bool is_of_optimizer(std::string_view parent) {
  return parent == "optimizer" || parent == "clip_grad";
}

/// The number in the folder of its step; nothing if there is no such folder.
std::optional<std::int64_t> step_of(const std::string& json) {
  for (const std::filesystem::path& part : std::filesystem::path(json)) {
    if (const auto number = dump::number_after(part.string(), "step")) return number;
  }
  return std::nullopt;
}

}  // namespace

RankJudge::RankJudge(const measuring::MeasuredRank& rank, const DiagnosisOptions& options,
                     const std::vector<std::string>& framework_frames, SecondReading& reading,
                     History& history, const MeasureEntry& measure_entry)
    : rank_(rank),
      options_(options),
      framework_frames_(framework_frames),
      reading_(reading),
      construct_(rank.target_construct ? &rank.target_construct->table() : nullptr),
      step_(step_of(rank.target.json)),
      golden_step_(step_of(rank.golden.json)),
      target_(rank.target),
      golden_(rank.golden),
      alignment_(*rank.alignment),
      history_(history),
      errors_(rank, *history.precision, options.first, measure_entry),
      target_only_(target_, golden_),
      golden_only_(golden_, target_),
      target_keys_(target_, !options.first),
      golden_keys_(golden_, !options.first),
      threshold_(rank.mode == measuring::Mode::tensor ? kThresholdTensors : kThresholdStatistics),
      other_operations_(of_other_operations(target_, golden_)),
      tensors_(rank.mode == measuring::Mode::tensor),
      replay_mode_(options.without.contains(Rule::replay) ? ReplayMode::never : options.replay) {
  out_.step = rank.step;
  out_.rank = rank.rank;
  out_.number = rank.number;
  out_.tensors = tensors_;
  out_.threshold = threshold_;
  out_.explained.resize(target_.items.size(), NAN);
  touched_.resize(target_.apis.size());
  untouched_.resize(target_.items.size());
  // Not the first step of the runs: something was trained before it.
  const bool late = step_.value_or(0) != 0 && golden_step_.value_or(0) != 0;
  if (history.steps == 0 && late) assess_drift();
  if (history.evidence) {
    fault_order_ = 0;
    clean_ = history.clean;
  }
}

RankDiagnosis RankJudge::run() {
  mark_compounds();
  defer_gradients();
  ask_step_rules();
  const auto entries = static_cast<std::uint32_t>(target_.apis.size());
  for (std::uint32_t api = 0; api < entries && !out_.stopped; ++api) {
    out_.looked_at = api + 1;
    errors_.measure(api);
    if (deferred_.contains(api)) continue;
    judge(api);
    if (const auto found = gradients_behind_.find(api); found != gradients_behind_.end()) {
      for (const std::uint32_t gradients : found->second) judge(gradients);
    }
  }
  if (out_.stopped) {
    leave_out(out_.looked_at);
  } else {
    advance_golden(static_cast<std::uint32_t>(golden_.apis.size()));
    close_run();
  }
  finish();
  return std::move(out_);
}

void RankJudge::judge(std::uint32_t api) {
  const auto parsed = dump::parse_entry_name(target_name(api));
  if (!parsed) return;
  const bool forward = parsed->direction == Direction::forward;
  at_ = api;
  if (!alignment_.has_golden(api)) {
    if (forward) target_alone(api);
    return;
  }
  before_ = std::max(forward_, backward_);
  Entry entry;
  entry.target = api;
  entry.golden = alignment_.golden_of[api];
  entry.name = *parsed;
  entry.nature = nature_of(parsed->operation());
  entry.compound = compound_[api];
  entry.communication = target_.calls.contains(target_name(api));
  if (construct_ != nullptr) entry.optimizer = is_of_optimizer(construct_->parent(target_name(api)));
  if (forward) {
    forward_pair(entry);
  } else if (parsed->direction == Direction::backward) {
    backward_pair(entry);
  } else if (parsed->direction == Direction::parameters_grad) {
    gradients_pair(entry);
  } else {
    return;
  }
  finish_entry(entry);
  out_.stopped = options_.first && may_stop(entry);
}

/// Releases before 26 of the Python tool write the gradients of a module's parameters where its forward
/// stands: they were there behind its last backward.
void RankJudge::defer_gradients() {
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> waiting;
  std::unordered_map<std::string_view, std::uint32_t> last;
  for (std::uint32_t api = 0; api < target_.apis.size(); ++api) {
    const auto parsed = dump::parse_entry_name(target_name(api));
    if (!parsed || !parsed->is_module) continue;
    const bool backward = parsed->direction == Direction::backward;
    if (backward) last[parsed->base] = api;
    if (parsed->direction == Direction::parameters_grad && !last.contains(parsed->base))
      waiting[parsed->base].push_back(api);
  }
  for (auto& [module, gradients] : waiting) {
    const auto place = last.find(module);
    if (place == last.end()) continue;
    for (const std::uint32_t api : gradients) deferred_[api] = place->second;
    gradients_behind_[place->second] = std::move(gradients);
  }
}

void RankJudge::ask_step_rules() {
  const StepView step{target_, golden_, errors_, history_};
  for (const StepRule rule : kStepRules) {
    std::optional<StepExplanation> found = rule(step);
    if (!found || options_.without.contains(found->finding.rule)) continue;
    for (const std::uint32_t item : found->items)
      explained_.try_emplace(item, static_cast<std::uint32_t>(step_findings_.size()));
    step_findings_.emplace_back(std::move(found->finding));
  }
}

/// An error that a rule of the whole step explains; the rule is reported at the first of them.
bool RankJudge::is_explained(Entry& entry, std::uint32_t item) {
  const auto found = explained_.find(item);
  if (found == explained_.end()) return false;
  if (std::optional<Finding> finding = std::exchange(step_findings_[found->second], std::nullopt)) {
    finding->item = item;
    finding->target_api = entry.target;
    finding->order = order_of(entry.target);
    finding->downstream = entry.touched || history_.evidence;
    offer(entry, std::move(*finding));
  }
  entry.touched = true;
  return true;
}

std::uint64_t RankJudge::order_of(std::uint32_t api) const {
  const auto deferred = deferred_.find(api);
  return 2 * std::uint64_t{deferred == deferred_.end() ? api : deferred->second} + 1;
}

/// Modules with anything recorded in them; without construct.json those that others lie in, and all where
/// operations are recorded too.
void RankJudge::mark_compounds() {
  const auto mark = [](const Side& side, const dump::ConstructTable* construct, const OneRecorder& alone,
                       std::vector<bool>& compound) {
    compound.assign(side.apis.size(), false);
    TextIndex modules;
    const auto text_of = [&](std::uint32_t api) { return side.text(side.apis[api].name); };
    std::unordered_map<std::string_view, std::uint32_t> first_at_path;
    bool operations = false;
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
      const auto parsed = dump::parse_entry_name(text_of(i));
      if (!parsed || parsed->direction == Direction::parameters_grad) continue;
      if (parsed->is_module) {
        modules.add(i, text_of);
      } else if (parsed->direction == Direction::forward && !alone.has(i)) {
        operations = true;
      }
    }
    const bool by_table = construct != nullptr && construct->size() > 0;
    std::unordered_map<std::string, bool> holds;  // paths that something lies in
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
      const std::string_view name = text_of(i);
      if (alone.has(i)) continue;
      if (by_table) {
        const std::uint32_t parent = modules.find(construct->parent(name), text_of);
        if (parent != TextIndex::kNone) compound[parent] = true;
        continue;
      }
      // Only the paths around this one: a hostile path of many parts costs its own length squared at most
      // once.
      std::string path(module_path(name));
      for (int levels = 0; levels < 64; ++levels) {
        const std::size_t dot = path.rfind('.');
        if (dot == std::string::npos) break;
        path.resize(dot);
        if (!holds.try_emplace(path, true).second) break;
      }
    }
    if (by_table) return;
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
      const std::string path(module_path(text_of(i)));
      if (!path.empty()) compound[i] = operations || holds.contains(path);
    }
  };
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) mark(target_, construct_, target_only_, compound_);
    if (side == 1) mark(golden_, nullptr, golden_only_, compound_golden_);
  });
  if (construct_ != nullptr && construct_->size() > 0) {
    for (std::uint32_t i = 0; i < golden_.apis.size(); ++i) {
      if (alignment_.target_of[i] != kNone) compound_golden_[i] = compound_[alignment_.target_of[i]];
    }
  }
  if (other_operations_) keep_open_modules();
  for (std::uint32_t i = 0; i < target_.items.size(); ++i) {
    if (item_of(i).state == State::parameters) parameter_items_.put(target_keys_.of(i), i);
  }
}

/// A module without anything that has a partner within it answers for all of it.
void RankJudge::keep_open_modules() {
  if (construct_ == nullptr) return;
  TextIndex modules;
  const auto text_of = [this](std::uint32_t api) { return target_name(api); };
  for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
    if (compound_[i]) modules.add(i, text_of);
  }
  std::vector<bool> open(compound_.size());
  for (std::uint32_t i = 0; i < target_.apis.size(); ++i) {
    if (!alignment_.has_golden(i)) continue;
    std::uint32_t around = modules.find(construct_->parent(target_name(i)), text_of);
    while (around != TextIndex::kNone && !open[around]) {
      open[around] = true;
      around = modules.find(construct_->parent(target_name(around)), text_of);
    }
  }
  compound_ = std::move(open);
}

double RankJudge::forward_error() const {
  return std::max({forward_, parameters_, history_.forward, flips_});
}

void RankJudge::measure_inputs(Entry& entry) {
  const Api& api = target_.apis[entry.target];
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    const Item& item = item_of(i);
    if (!item.is_tensor || errors_.golden_item[i] == kNone || item.state == State::output) continue;
    entry.e_in = std::max(entry.e_in, e_of(i));
    entry.b_in = std::max(entry.b_in, static_cast<double>(errors_.b[i]));
    if (!is_elementwise(entry.name.operation())) continue;
    const double n = static_cast<double>(std::max<std::uint64_t>(elements_of(target_.text(item.shape)), 1));
    entry.spread = std::max(entry.spread, std::min(e_of(i), 1.0) / std::sqrt(n));
  }
  entry.u = errors_.u[entry.target] > 0 ? errors_.u[entry.target] : kSingleRoundoff;
  if (is_recurrent(entry.name.operation())) entry.u *= kRecurrentRoundings;
  entry.worst_in = entry.e_in;
  entry.hidden = errors_.anything_hidden[entry.target];
  entry.e_out = errors_.output[entry.target];
}

void RankJudge::forward_pair(Entry& entry) {
  advance_golden(entry.golden);
  if (!entry.compound) close_run();
  measure_inputs(entry);
  const Api& api = target_.apis[entry.target];
  follow_inputs(entry);
  double scalar_error = 0;
  if (!entry.compound) structure(entry, scalar_error);
  entry.e_in = std::max(entry.e_in, scalar_error);
  sources(entry);
  if (entry.communication) {
    communicate(entry);
  } else if (entry.compound) {
    compound_outputs(entry);
  } else {
    outputs(entry);
  }
  look_at_runs(entry);
  target_flow_.put_outputs(target_keys_, entry.target, entry.compound);
  if (golden_next_ == entry.golden) {
    golden_flow_.put_outputs(golden_keys_, entry.golden, entry.compound);
    ++golden_next_;
  }
  last_paired_ = entry.target;
  forward_ = std::max(forward_, std::min(entry.e_out, 1.0));
  const double hidden = hidden_of(entry.target);
  const bool rounded = entry.u > kSingleRoundoff && hidden >= entry.u;
  if (rounded) rounded_ = std::max(rounded_, hidden);
  if (entry.e_out > 0 || rounded) coarsest_ = std::max(coarsest_, entry.u);
  history_.coarsest = std::max(history_.coarsest, entry.u);
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i)
    trained_ = trained_ ||
               (item_of(i).state == State::output && item_of(i).requires_grad == dump::RequiresGrad::yes);
}

/// What comes out of communication is other ranks' as well: judged when they are known.
void RankJudge::communicate(Entry& entry) {
  CommPlace place;
  Finding names;
  name_places(names, entry.target, entry.golden);
  place.entry = std::move(names.entry);
  place.golden_entry = std::move(names.golden_entry);
  place.module = std::move(names.module);
  place.where = std::move(names.where);
  place.api = entry.target;
  place.e_in = entry.e_in;
  place.e_out = entry.e_out;
  place.u = entry.u;
  place.arrived = entry.e_out > threshold_ * (entry.e_in + entry.u);
  place.call.operation = entry.name.operation();
  place.call.call = target_.calls.find(target_name(entry.target))->second;
  if (place.arrived) {
    const std::uint64_t order = order_of(entry.target);
    if (fault_order_ == UINT64_MAX) clean_ = before_;
    fault_order_ = std::min(fault_order_, order);
    entry.touched = true;
  }
  out_.communication.push_back(std::move(place));
}

std::string RankJudge::module_around(std::uint32_t target_api, std::uint32_t golden_api) const {
  const std::string_view name = target_api != kNone ? target_name(target_api) : golden_name(golden_api);
  std::string_view around = name;
  if (!name.starts_with("Module.") && !name.starts_with("Cell.")) {
    around = {};
    if (target_api == kNone && rank_.golden_construct) around = rank_.golden_construct->table().parent(name);
    if (target_api != kNone && construct_ != nullptr) around = construct_->parent(name);
  }
  const std::string_view path = module_path(around);
  return std::string(path.empty() && around != name ? around : path);
}

void RankJudge::name_places(Finding& found, std::uint32_t target_api, std::uint32_t golden_api) const {
  found.step = out_.step;
  found.rank = out_.rank;
  found.target_api = target_api;
  if (golden_api != kNone) found.golden_entry = golden_name(golden_api);
  found.entry = target_api != kNone ? target_name(target_api) : golden_name(golden_api);
  found.module = module_around(target_api, golden_api);
  if (target_api == kNone) {
    const std::string frame = reading_.golden_line(found.entry);
    found.where = frame.empty() ? frame : "in golden: " + frame;
  } else if (target_.stacks) {
    if (const auto* frames = target_.stacks->find(found.entry))
      found.where = dump::user_frame(*frames, framework_frames_);
  }
}

Finding RankJudge::finding(const Entry& entry, Kind kind, Rule rule, double excess) const {
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
  found.downstream = entry.touched || history_.evidence;
  found.joined = by_values && entry.tainted;
  const bool sure = kind == Kind::replay || (rule == Rule::source && excess >= kCertain * threshold_);
  const bool by_size = rule == Rule::introduced || rule == Rule::gain || kind == Kind::gradient ||
                       kind == Kind::unrecorded || kind == Kind::feed;
  // Parameters that have drifted apart are no independent errors: what adds them up may show more of them. So
  // may what is behind an update by the signs of gradients, or rounded to half types: single elements are
  // off.
  const bool behind_update =
      !tensors_ && history_.steps > 0 &&
      (entry.name.direction != Direction::forward || entry.optimizer || rule == Rule::introduced);
  const bool drifted = (drift_ && drift_->median > 0) || behind_update;
  const double least = drifted && by_values ? kTogether * threshold_ : threshold_;
  const bool weak = excess < least || (drift_ && by_size && before_ >= kLost);
  found.confidence = weak ? Confidence::hint : sure ? Confidence::certain : Confidence::likely;
  // Behind a decision that noise flipped, everything is different, and nothing is evidence.
  if (flipped_ && entry.touched && !any_evidence_) found.confidence = Confidence::hint;
  return found;
}

/// One line an entry: evidence before hints, then by rule.
void RankJudge::offer(Entry& entry, Finding found) {
  if (options_.without.contains(found.rule)) return;
  if (found.rule != Rule::structure && !found.is_evidence()) {
    if (found.excess > out_.largest_excess && found.excess < threshold_) {
      records_.emplace_back(order_of(entry.target), found.excess);
      out_.largest_excess = found.excess;
      out_.largest_entry = target_name(entry.target);
    }
    if (found.excess < kHint && found.kind != Kind::decision && found.kind != Kind::checksum) return;
  }
  const auto key = [](const Finding& each) { return std::make_pair(!each.is_evidence(), each.rule); };
  if (!entry.best || key(found) < key(*entry.best)) entry.best = std::move(found);
}

void RankJudge::finish_entry(Entry& entry) {
  if (entry.best) {
    name_places(*entry.best, entry.target, entry.golden);
    entry.touched = entry.touched || entry.best->is_evidence();
    keep(std::move(*entry.best), before_);
  }
  touched_[entry.target] = entry.touched;
}

bool RankJudge::may_stop(const Entry& entry) const {
  const bool forward = entry.name.direction == Direction::forward;
  const bool waits =
      std::any_of(runs_.begin() + static_cast<std::ptrdiff_t>(first_open_), runs_.end(),
                  [](const Run& run) { return !run.settled && !run.consumed && run.looks > 0; });
  if (forward && waits) return false;
  if (any_certain_) return true;
  if (!first_parameter_ || first_parameter_->confidence != Confidence::certain) return false;
  // Behind a step the optimizer may have done it, which all parameters show together, where they are used.
  return history_.steps == 0 || !forward;
}

/// Other ranks' calls are matched with those of entries that nobody looked at, too.
void RankJudge::leave_out(std::uint32_t first) {
  out_.left_out = target_.apis.size() - first;
  for (std::uint32_t api = first; api < target_.apis.size(); ++api) {
    const auto call = target_.calls.find(target_name(api));
    const auto parsed = dump::parse_entry_name(target_name(api));
    if (call == target_.calls.end() || !parsed || parsed->direction != Direction::forward ||
        !alignment_.has_golden(api))
      continue;
    CommPlace place;
    place.api = api;
    place.e_in = kInfinite;
    place.call.operation = parsed->operation();
    place.call.call = call->second;
    out_.communication.push_back(std::move(place));
  }
}

/// `before`: the largest error ahead of it.
void RankJudge::keep(Finding found, double before) {
  if (options_.without.contains(found.rule)) return;
  if (found.is_evidence()) {
    ++out_.evidence;
    if (fault_order_ == UINT64_MAX) clean_ = before;
    fault_order_ = std::min(fault_order_, found.order);
    any_evidence_ = true;
    any_certain_ = any_certain_ || found.confidence == Confidence::certain;
  }
  const auto weak = [](const Finding& each) { return !each.is_evidence() || each.downstream || each.joined; };
  // Evidence that is downstream of other evidence, and hints, are only kept while there is room.
  if (out_.findings.size() < kMostFindings || !weak(found)) out_.findings.push_back(std::move(found));
  if (out_.findings.size() < 2 * kMostFindings) return;
  const auto last = std::find_if(out_.findings.rbegin(), out_.findings.rend(), weak);
  full_ = last == out_.findings.rend();
  out_.findings.erase(full_ ? out_.findings.end() - 1 : last.base() - 1);
}

void RankJudge::finish() {
  // What comes behind a stop may show an effect.
  if (!out_.stopped) {
    for (Run& run : runs_) settle_run(run, {}, 0, 0);
  }
  keep_parameters();
  note_drift();
  std::stable_sort(out_.findings.begin(), out_.findings.end(), [](const Finding& a, const Finding& b) {
    return std::make_tuple(!a.is_evidence(), a.order, a.rule) <
           std::make_tuple(!b.is_evidence(), b.order, b.rule);
  });
  for (Finding& found : out_.findings) {
    if (found.next.empty()) found.next = advice(found, out_.tensors);
    for (const auto& [call, repeated] : repeated_) {
      if (found.kind != Kind::argument || found.target_api != repeated.first) continue;
      found.repeated = repeated.times;
      found.concerned += repeated.times;
    }
  }
  for (const auto& [order, excess] : records_) {
    if (order < fault_order_) out_.largest_before = excess;
  }
  if (out_.findings.size() > kMostFindings) out_.findings.resize(kMostFindings);
  take_notes();
  find_origins();
  out_.golden_item = std::move(errors_.golden_item);
  out_.error = std::move(errors_.e);
  if (out_.stopped && out_.left_out > 0) {
    // What was measured ahead of its turn was not judged.
    const std::uint32_t end = target_.apis[out_.looked_at].first;
    std::fill(out_.error.begin() + static_cast<std::ptrdiff_t>(end), out_.error.end(), NAN);
  }
  history_.forward = std::max(history_.forward, forward_);
  history_.backward = std::max(history_.backward, backward_);
  history_.gradients = std::max(history_.gradients, gradients_);
  history_.evidence = history_.evidence || fault_order_ != UINT64_MAX;
  history_.certain = history_.certain || any_certain_;
  history_.clean = clean_;
  history_.flipped = history_.flipped || flipped_;
  ++history_.steps;
}

/// All parameters that differ are one line; where most were updated otherwise, it is the optimizer's.
void RankJudge::keep_parameters() {
  const bool by_tensors = updates_.size() > 0;
  const double deviation = by_tensors ? updates_.deviation() : steps_.deviation();
  const bool all_updates = deviation >= kWrongSetting;
  const bool most = history_.steps > 0 && parameters_wrong_ > 1 && 2 * parameters_wrong_ > parameters_judged_;
  if (all_updates || most) {
    Finding found = all_updates ? std::move(*first_updated_) : std::move(*first_parameter_);
    found.kind = Kind::optimizer;
    found.rule = Rule::source;
    if (all_updates) found.excess = threshold_ * deviation / kWrongSetting;
    found.confidence = found.excess >= kCertain * threshold_ ? Confidence::certain : Confidence::likely;
    const std::size_t updated = by_tensors ? updates_.size() : steps_.parameters();
    found.concerned = all_updates ? updated : parameters_wrong_;
    found.text = all_updates
                     ? fmt::format("optimizer: the step of {} parameters is {:.3g} times golden's", updated,
                                   by_tensors ? updates_.median_gain() : steps_.median())
                     : fmt::format("optimizer: {} of {} parameters differ after the update, by up to {}",
                                   parameters_wrong_, parameters_judged_, error_text(parameter_largest_));
    if (found.order < fault_order_) clean_ = 0;
    keep(std::move(found), 0);
  } else if (first_parameter_) {
    Finding found = std::move(*first_parameter_);
    found.concerned = parameters_wrong_;
    if (parameters_wrong_ > 1)
      found.text +=
          fmt::format("; so do {} more of {} parameters", parameters_wrong_ - 1, parameters_judged_);
    if (found.order < fault_order_) clean_ = before_first_parameter_;
    keep(std::move(found), before_first_parameter_);
  }
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
  RankDiagnosis found =
      RankJudge(rank, options, framework_frames, reading, past.history, measure_entry).run();
  found.broken_off = reading.unread();
  found.first_broken_off = reading.first_unread();
  found.unread = static_cast<std::uint64_t>(
      std::count_if(rank.metrics.begin(), rank.metrics.end(), [](const measuring::TensorMetrics& metrics) {
        return metrics.failed && metrics.status == measuring::MetricStatus::unsupported;
      }));
  return found;
}

}  // namespace msprobe::diagnosis
