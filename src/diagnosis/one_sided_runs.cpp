// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/one_sided_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnosis/amplification.hpp"
#include "diagnosis/left_values.hpp"
#include "diagnosis/recorders.hpp"
#include "diagnosis/run_outputs.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "dump/side.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Side;
using dump::State;
using measuring::kInfinite;
using pairing::kNone;

/// How many entries after a run may show its effect, if no entry takes its outputs.
constexpr unsigned kLooks = 8;
constexpr std::size_t kShownOfRun = 4;

std::string count_of(std::size_t times) {
  return times == 1 ? std::string("once") : human_count(times) + " times";
}

/// Small numbers among the arguments of normalisations, and those that a sum adds. The weight of an operand
/// is no such number.
std::vector<double> epsilons_of(const Side& side, const std::vector<std::uint32_t>& entries) {
  std::vector<double> found;
  for (const std::uint32_t api : entries) {
    const dump::EntryName parsed = side.parsed_name(api);
    const std::string_view operation = parsed.operation();
    const bool adds = pairing::nature_of(operation) == dump::Nature::sum;
    if (!adds && !pairing::may_normalise(operation)) continue;
    for (const std::uint32_t i : side.apis[api].items()) {
      const dump::Item& item = side.items[i];
      if (item.is_tensor || item.state != State::input) continue;
      if (const auto position = pairing::position_of(side, item); adds && (!position || *position > 1))
        continue;
      if (side.text(item.dtype) != "<class 'float'>") continue;
      const double value = measuring::number_of(side, item, dump::kMax);
      if (value > 0 && value < kNoisy) found.push_back(value);
    }
  }
  return found;
}

}  // namespace

/// The largest output error of the entries that made the items.
double OneSidedRuns::carried(std::uint32_t target_item, std::uint32_t golden_item) const {
  double error = 0;
  if (target_item != kNone) {
    const std::uint32_t api = target_.items[target_item].api;
    const auto alone = alone_target_.find(api);
    error = alone != alone_target_.end()
                ? alone->second
                : std::max(static_cast<double>(errors_.output[api]), walk_.e_of(target_item));
  }
  if (golden_item != kNone) {
    const std::uint32_t api = golden_.items[golden_item].api;
    const auto alone = alone_golden_.find(api);
    // If the partner comes later in the target, its error is not known yet and explains nothing.
    const std::uint32_t partner = alignment_.target_of[api];
    const double other = alone != alone_golden_.end() ? alone->second
                         : partner != kNone && partner < walk_.at
                             ? static_cast<double>(errors_.output[partner])
                             : 0;
    error = std::max(error, other);
  }
  return error;
}

/// The order of an entry that golden alone has: after the partner of the last entry before it that has one.
std::uint64_t OneSidedRuns::order_behind(std::uint32_t golden) const {
  for (; golden > 0; --golden) {
    const std::uint32_t partner = alignment_.target_of[golden - 1];
    if (partner != kNone) return walk_.order_of(partner) + 1;
  }
  return 0;
}

/// Adds the outputs of golden's entries up to `end` to the flow, and collects the runs that golden alone has.
void OneSidedRuns::advance_golden(std::uint32_t end) {
  for (; walk_.golden_next < end; ++walk_.golden_next) {
    const dump::EntryName parsed = walk_.golden.parsed_name(walk_.golden_next);
    if (parsed.direction != Direction::forward) continue;
    if (walk_.split_batch && walk_.split_batch->has_golden(walk_.golden_next, parsed.base)) {
      walk_.split_batch->golden_outputs.put_outputs(walk_.golden_keys, walk_.golden_next, false);
      continue;
    }
    if (alignment_.target_of[walk_.golden_next] == kNone) {
      double error = 0;
      for (const std::uint32_t i : golden_.apis[walk_.golden_next].items()) {
        if (golden_.items[i].state != State::input) continue;
        const std::uint32_t from = walk_.golden_flow.find(walk_.golden_keys.of(i));
        if (from != ContentMap::kUnknown) error = std::max(error, carried(kNone, from));
      }
      alone_golden_[walk_.golden_next] = grown(golden_, walk_.golden_next, error);
      if (!walk_.compound_golden[walk_.golden_next]) join_run(false, walk_.golden_next);
    }
    walk_.golden_flow.put_outputs(walk_.golden_keys, walk_.golden_next,
                                  walk_.compound_golden[walk_.golden_next]);
  }
}

/// Adds an entry to the open run, which it opens if none is.
void OneSidedRuns::join_run(bool is_target, std::uint32_t api) {
  if (is_left_out(is_target, api)) return;
  if (!run_open_)
    runs_.push_back({{}, {}, is_target ? walk_.order_of(api) : order_behind(api), largest_.forward, kLooks});
  run_open_ = true;
  Run& run = runs_.back();
  const Side& side = is_target ? target_ : golden_;
  std::vector<std::uint32_t>& calls = is_target ? run.target : run.golden;
  if (calls.size() < kShownOfRun) calls.push_back(api);
  run.u = std::hypot(run.u, rounding_of(side, api));  // independent roundings add as squares
  run.exchanges = run.exchanges || pairing::is_communication(side.parsed_name(api).operation());
  (is_target ? run_of_target_ : run_of_golden_)[api] = static_cast<std::uint32_t>(runs_.size() - 1);
}

/// The error of a call of one side: a periodic function of large numbers enlarges the error that it takes.
double OneSidedRuns::grown(const Side& side, std::uint32_t api, double error) {
  const dump::Nature nature = pairing::nature_of(side.parsed_name(api).operation());
  if (nature != dump::Nature::periodic) return error;
  error = std::min(amplification(side, api, nature) * error, 1.0);
  largest_.forward = std::max(largest_.forward, error);
  return error;
}

void OneSidedRuns::target_alone(std::uint32_t api_number) {
  double error = 0;
  for (const std::uint32_t i : target_.apis[api_number].items()) {
    if (target_.items[i].state != State::input) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    if (from == ContentMap::kUnknown) {
      if (target_.items[i].is_tensor) walk_.reached[api_number].join(walk_.anything_seen());
      continue;
    }
    walk_.reached[api_number].join(walk_.reached[target_.items[from].api]);
    walk_.consumers[target_.items[from].api].push_back(api_number);
    error = std::max(error, carried(from, kNone));
    if (walk_.touched[target_.items[from].api]) walk_.touched[api_number] = true;
  }
  alone_target_[api_number] = grown(target_, api_number, error);
  if (alone_target_[api_number] > error) walk_.reached[api_number].join({alone_target_[api_number], false});
  if (!walk_.compound[api_number]) join_run(true, api_number);
  walk_.target_flow.put_outputs(walk_.target_keys, api_number, walk_.compound[api_number]);
}

bool OneSidedRuns::is_of_optimizer(bool is_target, std::uint32_t api) const {
  const dump::ConstructTable* const construct = is_target ? walk_.construct : walk_.golden_construct;
  const std::string_view name = is_target ? walk_.target_name(api) : walk_.golden_name(api);
  return construct != nullptr && dump::is_of_optimizer(construct->parent(name));
}

/// Whether the other side lacks an entry because of its recorder, or because its optimizer updates other
/// parameters or parts of them.
bool OneSidedRuns::is_left_out(bool is_target, std::uint32_t api) const {
  if (is_target ? walk_.target_only.has(api) : walk_.golden_only.has(api)) return true;
  if (is_target ? alignment_.is_update_alone(api) : alignment_.is_golden_update_alone(api)) return true;
  return walk_.part_updates && is_of_optimizer(is_target, api);
}

/// Other implementations of a step round differently, and noise steps in any direction. Parameters are judged
/// with that error where they are used.
double OneSidedRuns::of_steps(const Run& run, double u) const {
  const bool steps = (!run.target.empty() && is_of_optimizer(true, run.target[0])) ||
                     (!run.golden.empty() && is_of_optimizer(false, run.golden[0]));
  return steps ? trained_rounding(u) : 0;
}

/// If no entry takes the outputs of a run, a jump of errors just after the run shows its effect.
void OneSidedRuns::look(EntryPair& entry) {
  if (entry.compound) return;
  const std::size_t end = runs_.size() - (run_open_ ? 1 : 0);
  const auto is_over = [](const Run& run) { return run.settled || run.consumed || run.looks == 0; };
  double rounding = 0;  // of all runs that may have given what the entry takes
  for (std::size_t i = first_open_; i < end; ++i) {
    if (!is_over(runs_[i])) rounding = std::hypot(rounding, runs_[i].u);
  }
  for (std::size_t i = first_open_; i < end; ++i) {
    Run& run = runs_[i];
    if (is_over(run)) {
      if (i == first_open_) ++first_open_;
      continue;
    }
    --run.looks;
    run.u = std::max(run.u, entry.u);
    // An entry that takes or may take a tensor from other evidence shows nothing about the run, and neither
    // does the optimizer, nor an output of an entry that was itself called differently.
    if (entry.touched || entry.tainted || entry.optimizer) continue;
    const bool own = entry.best && entry.best->is_evidence() && entry.best->rule == Rule::structure;
    double error = own ? entry.worst_in : std::max(entry.worst_in, entry.e_out);
    // Masks have the same statistics wherever as many elements are true; the call that takes one may give
    // whole numbers.
    const bool takes = !own && takes_from(entry, run);
    if (run.exchanges && !takes) continue;
    if (takes) {
      for (const std::uint32_t item : target_.apis[entry.target].items()) {
        if (walk_.item_of(item).state == State::output) error = std::max(error, walk_.e_of(item));
      }
    }
    const double limit = std::max(run.error, trained_error()) + std::max(rounding, run.u);
    // Different operations for the same result have different roundings.
    const bool rewritten = !run.target.empty() && !run.golden.empty();
    if (error >
        std::max((rewritten ? kThresholdStatistics : walk_.threshold) * limit, of_steps(run, entry.u))) {
      settle(run, walk_.target_name(entry.target), error, run.error);
      // The run caused the wrong input.
      if (entry.best && (takes || entry.best->rule == Rule::source)) entry.best->downstream = true;
    } else if (own) {
      run.looks = 0;  // that call may cause the differences from here on
    }
  }
}

bool OneSidedRuns::takes_from(const EntryPair& entry, const Run& run) {
  for (const std::uint32_t i : target_.apis[entry.target].items()) {
    if (walk_.item_of(i).state != State::input) continue;
    const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(i));
    if (from != ContentMap::kUnknown && run_of_target(target_.items[from].api) == &run) return true;
  }
  return false;
}

/// Reports a run. An empty `consumer` means that no effect was seen.
void OneSidedRuns::settle(Run& run, std::string_view consumer, double error, double before,
                          std::string_view given) {
  if (run.settled) return;
  run.settled = true;
  if (walk_.other_operations || (consumer.empty() && is_behind_end(run))) return;
  Finding found;
  found.rule = Rule::structure;
  found.confidence = Confidence::certain;
  found.excess = kInfinite;
  found.order = run.order;
  const bool both = !run.target.empty() && !run.golden.empty();
  found.kind = both ? Kind::exchanged : run.target.empty() ? Kind::removed : Kind::added;
  walk_.name_places(found, run.target.empty() ? kNone : run.target[0],
                    run.golden.empty() ? kNone : run.golden[0]);
  const auto list = [](const Side& side, const std::vector<std::uint32_t>& apis) {
    std::string text;
    for (const std::uint32_t api : apis)
      text += (text.empty() ? "" : ", ") + std::string(side.parsed_name(api).base);
    return text;
  };
  // Without an effect, one side may just not have recorded the entries.
  const std::string_view verb = consumer.empty() ? "records" : "runs";
  const std::string ours = list(target_, run.target);
  const std::string theirs = list(golden_, run.golden);
  const bool unpaired = ours == theirs;  // only their partners are known to differ
  const std::string_view elsewhere = both ? std::string_view() : at_another_place(run);
  if (unpaired) {
    found.confidence = Confidence::likely;
    found.joined = walk_.any_evidence;
    found.text =
        fmt::format("both runs call {} here, but the calls could not be paired and are not compared", ours);
  } else if (both) {
    found.text = fmt::format("{} {} where golden {} {}", verb, ours, verb, theirs);
  } else if (run.target.empty()) {
    found.text = elsewhere.empty() ? fmt::format("golden {} {} here, this run does not", verb, theirs)
                                   : fmt::format("golden {} {} here, this run at another place, as {}", verb,
                                                 theirs, elsewhere);
  } else {
    found.text = elsewhere.empty()
                     ? fmt::format("{} {}, golden does not", verb, ours)
                     : fmt::format("{} {} here, golden at another place, as {}", verb, ours, elsewhere);
  }
  if (!consumer.empty()) {
    found.text += error == 0 ? fmt::format("; the {} takes other gradients", consumer)
                             : fmt::format("; {} at {}, {} before",
                                           walk_.error_at(errors_.entry_named(consumer), error), consumer,
                                           error_text(before));
    if (!given.empty()) found.text += fmt::format(", where {}", given);
    found.text += how_often(run);
  }
  found.concerned = std::max<std::size_t>(run.target.size(), run.golden.size());
  found.downstream = walk_.any_evidence && !run.target.empty() && walk_.touched[run.target[0]];
  const std::string epsilon = other_epsilon(run);
  if (!epsilon.empty()) found.text += "; " + epsilon;
  if ((!consumer.empty() && !unpaired) || !epsilon.empty()) found.side = "the code differs, not a kernel";
  if (run.supposed) found.confidence = Confidence::likely;
  if (consumer.empty() && !epsilon.empty()) {
    found.kind = Kind::argument;
    found.confidence = Confidence::likely;
    found.text += ", whose effect rounding hides";
  } else if (consumer.empty()) {
    found.confidence = Confidence::hint;
    if (!note_end(run, found)) found.text += "; no recorded effect";
  }
  walk_.keep(std::move(found), run.error);
}

/// The call of a module around a call; empty outside of modules.
std::string_view OneSidedRuns::module_around(bool golden, std::uint32_t api) const {
  const dump::ConstructTable* const construct = golden ? walk_.golden_construct : walk_.construct;
  const std::string_view name = golden ? walk_.golden_name(api) : walk_.target_name(api);
  const std::string_view module = construct == nullptr ? "" : construct->parent(name);
  return pairing::module_path(module).empty() ? std::string_view() : module;
}

/// The first call of the other side that does at another place what the run does: each call of the run has a
/// call of the same operation in the same call of a module there, whose partner is not in that module, or
/// near it outside of modules, without a partner. Empty if it lacks one.
std::string_view OneSidedRuns::at_another_place(const Run& run) {
  const bool golden = run.target.empty();
  const Side& other = golden ? target_ : golden_;
  const std::vector<std::uint32_t>& partners = golden ? alignment_.golden_of : alignment_.target_of;
  constexpr std::uint32_t kMostApart = 16;  // outside of modules
  std::uint32_t first = kNone;
  std::uint32_t next = 0;  // in the other side; its calls come in the same order
  for (const std::uint32_t api : golden ? run.golden : run.target) {
    const std::string_view module = module_around(golden, api);
    const auto& places = step_calls().places[golden ? 0 : 1];
    const auto found = places.find({module, (golden ? golden_ : target_).parsed_name(api).base});
    if (found == places.end()) return {};
    const std::vector<std::uint32_t>& calls = found->second;
    const bool outside = module.empty();
    const std::uint32_t nearest = api - std::min(api, kMostApart);
    const auto begin = std::lower_bound(calls.begin(), calls.end(), outside ? std::max(next, nearest) : next);
    const auto end = outside ? std::upper_bound(begin, calls.end(), api + kMostApart) : calls.end();
    // Another call at its place, as of the next normalization, may have become its partner.
    const auto call = std::find_if(begin, end, [&](std::uint32_t each) {
      return partners[each] == kNone || (!outside && module_around(golden, partners[each]) != module);
    });
    if (call == end) return {};
    if (first == kNone) first = *call;
    next = *call + 1;
  }
  return first == kNone ? std::string_view() : other.text(other.apis[first].name);
}

/// Looks up the calls of both sides once, because many runs ask for them.
const StepCalls& OneSidedRuns::step_calls() {
  if (step_calls_) return *step_calls_;
  step_calls_.emplace();
  for (const bool golden : {false, true}) {
    const Side& side = golden ? golden_ : target_;
    step_calls_->first_backward[golden ? 1 : 0] = first_backward(side);
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      const dump::EntryName name = side.parsed_name(api);
      if (name.direction != Direction::forward) continue;
      ++step_calls_->times[name.base][golden ? 1 : 0];
      const std::string_view module = module_around(golden, api);
      step_calls_->places[golden ? 1 : 0][{module, name.base}].push_back(api);
    }
  }
  return *step_calls_;
}

/// One run may change gradients in every pass, the other once: this says how often each calls the operation.
std::string OneSidedRuns::how_often(const Run& run) {
  const bool ours = !run.target.empty();
  if (ours == !run.golden.empty()) return {};
  const std::uint32_t call = ours ? run.target[0] : run.golden[0];
  if (call < step_calls().first_backward[ours ? 0 : 1]) return {};
  const std::string_view base = (ours ? target_ : golden_).parsed_name(call).base;
  const auto found = step_calls().times.find(base);
  if (found == step_calls().times.end()) return {};
  const auto& [target_times, golden_times] = found->second;
  if (target_times == 0 || golden_times == 0 || target_times == golden_times) return {};
  return fmt::format("; {} is called {} in this step, in golden {}", base, count_of(target_times),
                     count_of(golden_times));
}

/// Whether the run comes after the end of a side that did not finish the step. A note says where that is.
bool OneSidedRuns::is_behind_end(const Run& run) const {
  const bool by_target = run.golden.empty();
  if (!by_target && !run.target.empty()) return false;
  const std::vector<std::uint32_t>& partners = by_target ? alignment_.golden_of : alignment_.target_of;
  const std::uint32_t first = by_target ? run.target[0] : run.golden[0];
  return std::all_of(partners.begin() + first, partners.end(),
                     [](std::uint32_t partner) { return partner == kNone; }) &&
         !ends_before(by_target ? golden_ : target_, by_target ? target_ : golden_).empty();
}

/// Describes a side that has no more calls of operations after the run: its recording may have ended,
/// whatever the code does. False if it has some.
bool OneSidedRuns::note_end(const Run& run, Finding& found) const {
  const bool by_target = run.golden.empty();
  if (!by_target && !run.target.empty()) return false;
  const Side& longer = by_target ? target_ : golden_;
  const Side& shorter = by_target ? golden_ : target_;
  // A recording that goes on after its backward, and with another step, did not end here.
  if (!history_.ends && behind_backward(shorter) < shorter.apis.size()) return false;
  const std::vector<std::uint32_t>& partners = by_target ? alignment_.golden_of : alignment_.target_of;
  const std::uint32_t first = by_target ? run.target[0] : run.golden[0];
  std::size_t more = 0;
  bool others = false;
  for (std::uint32_t i = first; i < longer.apis.size(); ++i) {
    const dump::EntryName parsed = longer.parsed_name(i);
    // Modules, and gradients of earlier calls, may continue.
    const bool calls = !parsed.is_module && parsed.direction == Direction::forward;
    if (partners[i] == kNone) {
      ++more;
    } else if (calls) {
      return false;
    } else {
      others = true;
    }
  }
  const std::string_view shorter_is = by_target ? "golden" : "this run";
  const std::string_view longer_is = by_target ? "this run" : "golden";
  found.text =
      fmt::format("{} {}{}, {} continues for {} more {}", shorter_is,
                  others ? "records no more operation calls" : "ends here", ends_before(shorter, longer),
                  longer_is, human_count(more), more == 1 ? "entry" : "entries");
  found.next =
      "check whether both recordings stopped at the same place, whether one hit an exception or stopped "
      "recomputing (checkpointing), and whether the code does less there";
  return true;
}

/// `epsilon is 0.01, golden 1e-06`: a fused operator's argument, and the number that composed operations add;
/// empty where they agree or a side has none.
std::string OneSidedRuns::other_epsilon(const Run& run) const {
  const auto ours = epsilons_of(target_, run.target);
  const auto theirs = epsilons_of(golden_, run.golden);
  const bool common = std::any_of(ours.begin(), ours.end(), [&](double value) {
    return std::find(theirs.begin(), theirs.end(), value) != theirs.end();
  });
  if (ours.empty() || theirs.empty() || common) return {};
  return fmt::format("epsilon is {:g}, golden {:g}", ours.front(), theirs.front());
}

/// Attributes a change between two entries to a run that one side alone has between them. False if no such
/// run exists.
bool OneSidedRuns::settle_between(std::uint32_t producer, const EntryPair& entry, double error, double before,
                                  std::string_view given, std::uint32_t item) {
  constexpr std::size_t kMostRuns = 64;
  const auto end = runs_.rbegin() + static_cast<std::ptrdiff_t>(std::min(runs_.size(), kMostRuns));
  for (auto run = runs_.rbegin(); run != end; ++run) {
    if (run->order < walk_.order_of(producer)) return false;
    const bool selected = item != kNone && may_be_selected(*run, entry, item);
    const bool in_sight = run->settled || (!run->exchanges && !run->consumed && (run->looks > 0 || selected));
    if (run->order > walk_.order_of(entry.target) || !in_sight) continue;
    run->supposed = run->looks == 0 && selected;
    settle(*run, walk_.target_name(entry.target), error, before, given);
    return true;
  }
  return false;
}

/// Whether indexing may have selected an item of the entry's module from the run's outputs there.
bool OneSidedRuns::may_be_selected(const Run& run, const EntryPair& entry, std::uint32_t item) const {
  const std::string module = walk_.module_around(run.target.empty() ? kNone : run.target[0],
                                                 run.golden.empty() ? kNone : run.golden[0]);
  return module == walk_.module_around(entry.target, entry.golden) &&
         may_select(target_, run.target, walk_.item_of(item)) &&
         may_select(golden_, run.golden, golden_.items[errors_.golden_item[item]]);
}

bool OneSidedRuns::settle_mask(std::uint32_t target_item, const EntryPair& entry, double error,
                               double before) {
  const auto run = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& each) {
    return !each.settled && may_give(target_, each.target, walk_.item_of(target_item)) &&
           may_give(golden_, each.golden, golden_.items[errors_.golden_item[target_item]]);
  });
  if (run == runs_.rend()) return false;
  settle(*run, walk_.target_name(entry.target), error, before);
  return true;
}

OneSidedRuns::Run* OneSidedRuns::run_that_takes(
    const ContentKeys& keys, std::uint32_t api,
    const std::unordered_map<std::uint32_t, std::uint32_t>& runs) {
  const Side& side = keys.side();
  const auto made = contents_in(keys, api, State::output);
  constexpr std::uint32_t kMostBehind = 16;
  const auto end = std::min<std::size_t>(side.apis.size(), std::size_t{api} + 1 + kMostBehind);
  for (std::uint32_t next = api + 1; next < end; ++next) {
    const auto run = runs.find(next);
    if (run != runs.end() && has_one_of(keys, next, State::input, made)) return &runs_[run->second];
  }
  return nullptr;
}

bool OneSidedRuns::settle_behind(std::uint32_t forward, const EntryPair& backward, double error,
                                 double before) {
  if (!alignment_.has_golden(forward)) return false;
  advance_golden(backward.golden);
  Run* run = run_that_takes(walk_.target_keys, forward, run_of_target_);
  if (run == nullptr) run = run_that_takes(walk_.golden_keys, alignment_.golden_of[forward], run_of_golden_);
  if (run == nullptr || run->settled) return run != nullptr;
  settle(*run, walk_.target_name(backward.target), error, before);
  return true;
}

OneSidedRuns::Run* OneSidedRuns::run_in(const std::unordered_map<std::uint32_t, std::uint32_t>& runs,
                                        std::uint32_t api) {
  const auto run = runs.find(api);
  return run == runs.end() ? nullptr : &runs_[run->second];
}

OneSidedRuns::Run* OneSidedRuns::last_between(std::uint64_t after, std::uint64_t before) {
  const auto run = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& each) {
    return !each.settled && each.order > after && each.order < before;
  });
  return run == runs_.rend() ? nullptr : &*run;
}

bool OneSidedRuns::any_waits() const {
  return std::any_of(runs_.begin() + static_cast<std::ptrdiff_t>(first_open_), runs_.end(),
                     [](const Run& run) { return !run.settled && !run.consumed && run.looks > 0; });
}

void OneSidedRuns::settle_gradients() {
  const bool ended = !ends_before(target_, golden_).empty() || !ends_before(golden_, target_).empty();
  if (walk_.other_operations || errors_.loss_scale || ended) return;
  // The other side may change them by calls that are not recorded, as clip_grad_norm_ does.
  GradientChanges changes =
      changes_of(taken_gradients(target_, golden_, errors_.golden_item), errors_, walk_.threshold);
  changes.same.merge(taken_alike(target_, golden_));
  for (Run& run : runs_) {
    if (!run.settled) settle_gradient(run, changes.same);
  }
}

void OneSidedRuns::finish() {
  for (Run& run : runs_) {
    const bool judged = run.settled || run.consumed || of_steps(run, 1) > 0;
    if (const LeftValue left = judged ? LeftValue() : left_value(walk_, run.target, run.golden); left.other)
      settle(run, walk_.target_name(left.call), left.error, left.before, "both change a tensor in place");
    settle(run, {}, 0, 0);
  }
}

/// The parameter whose gradient the call changes in place; empty if it changes no gradient.
std::string OneSidedRuns::changed_gradient(const ContentKeys& keys, std::uint32_t api,
                                           const ContentMap& gradients) const {
  const Side& side = keys.side();
  // An optimizer may change gradients as part of its step.
  if (!pairing::is_in_place(side.parsed_name(api).operation()) || is_of_optimizer(&side == &target_, api))
    return {};
  std::uint64_t taken = 0;
  std::uint64_t given = 0;
  for (const std::uint32_t i : side.apis[api].items()) {
    const bool first = taken == 0 && side.items[i].state == State::input && side.items[i].is_tensor;
    if (first) taken = keys.of(i);
    if (side.items[i].state == State::output && given == 0) given = keys.of(i);
  }
  const std::uint32_t gradient = gradients.find(taken);
  if (gradient == ContentMap::kUnknown || given == 0 || given == taken) return {};
  return side.items[gradient].state == State::parameters_grad
             ? pairing::name_in_model(side, side.items[gradient])
             : "";
}

/// Reports a run that changes a gradient after the backward. The changed gradient goes into the optimizer,
/// whether that is recorded or not.
/// `same`: the parameters of which the optimizers of both sides take the same gradient.
void OneSidedRuns::settle_gradient(Run& run, const std::set<std::string>& same) {
  const auto first = [&](const ContentKeys& keys, const std::vector<std::uint32_t>& calls,
                         const ContentMap& gradients) {
    for (const std::uint32_t api : calls) {
      if (std::string parameter = changed_gradient(keys, api, gradients); !parameter.empty())
        return std::make_pair(api, std::move(parameter));
    }
    return std::make_pair(kNone, std::string());
  };
  const auto [call, ours] = first(walk_.target_keys, run.target, walk_.gradient_items);
  const auto [golden_call, theirs] = first(walk_.golden_keys, run.golden, walk_.golden_gradient_items);
  if (ours.empty() == theirs.empty() || same.contains(ours.empty() ? theirs : ours)) return;
  run.settled = true;
  Finding found;
  found.kind = ours.empty() ? Kind::removed : Kind::added;
  found.rule = Rule::structure;
  found.confidence = Confidence::likely;
  found.excess = kInfinite;
  found.order = run.order;
  walk_.name_places(found, call, golden_call);
  found.text = fmt::format("{} changes the gradient of {} between backward and optimizer, {} does not",
                           ours.empty() ? "golden" : "this run", ours.empty() ? theirs : ours,
                           ours.empty() ? "this run" : "golden");
  found.text += how_often(run);
  found.side = "the code differs, not a kernel";
  walk_.keep(std::move(found), walk_.any_error());
}

}  // namespace msprobe::diagnosis
