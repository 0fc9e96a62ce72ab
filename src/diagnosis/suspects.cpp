// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/suspects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "diagnosis/flow.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Side;
using dump::State;
using measuring::elements_of;
using pairing::kNone;

/// A search ends after this many entries: in a model without other faults, few are on the way.
constexpr std::size_t kMostVisited = 4096;
/// The most calls between an argument that no statistic shows, as the side that `pad` fills, and the
/// first call that mixes the elements.
constexpr unsigned kMostBetween = 4;
/// How many entries the search for the last right backward covers.
constexpr std::uint32_t kMostBefore = 256;

bool is_by_values(const Finding& found) {
  return found.rule == Rule::source || found.rule == Rule::introduced || found.rule == Rule::gain;
}

/// The text of a difference whose effect is known now: both runs run what they record.
std::string with_effect(std::string text) {
  constexpr std::string_view kNoEffect = "; no recorded effect";
  const std::size_t at = text.find(kNoEffect);
  if (at == std::string::npos) return text;
  text.erase(at, kNoEffect.size());
  constexpr std::string_view kRecords = "records ";
  for (std::size_t next = text.find(kRecords); next != std::string::npos; next = text.find(kRecords))
    text.replace(next, kRecords.size(), "runs ");
  return text;
}

bool is_between(const Finding& found) {
  return found.kind == Kind::optimizer && found.place == kGradients;
}

}  // namespace

const Suspects::Graph& Suspects::graph_of(bool is_target) {
  std::optional<Graph>& graph = is_target ? target_graph_ : golden_graph_;
  if (graph) return *graph;
  const ContentKeys& keys = is_target ? walk_.target_keys : walk_.golden_keys;
  graph.emplace();
  graph->consumers.resize(keys.side().apis.size());
  graph->producers.resize(keys.side().apis.size());
  for (const FlowEdge& edge : flow_edges(keys, is_target ? walk_.compound : walk_.compound_golden)) {
    graph->consumers[edge.producer].push_back(edge.consumer);
    graph->producers[edge.consumer].push_back(edge.producer);
  }
  return *graph;
}

/// The entry that made the outputs of an entry: an operation, where a module only hands them on.
std::uint32_t Suspects::maker_of(bool is_target, std::uint32_t api) const {
  const ContentKeys& keys = is_target ? walk_.target_keys : walk_.golden_keys;
  const Side& side = keys.side();
  if (!side.parsed_name(api).is_module) return api;
  const auto handed_on = contents_in(keys, api, State::output);
  const std::uint32_t steps = std::min(api, kMostBefore);
  for (std::uint32_t entry = api; api - entry < steps;) {
    --entry;
    if (!side.parsed_name(entry).is_module && has_one_of(keys, entry, State::output, handed_on)) return entry;
  }
  return api;
}

Suspects::Suspect Suspects::suspect_at(bool is_target, std::uint32_t api) {
  Suspect suspect;
  suspect.run = is_target ? runs_.run_of_target(api) : runs_.run_of_golden(api);
  const std::uint32_t ours = is_target ? api : alignment_.target_of[api];
  if (hints_.contains(ours)) suspect.hint = ours;
  return suspect;
}

/// Whether a call sends back the same gradient as its golden partner. A gradient that is wrong after it then
/// has its error from elsewhere.
bool Suspects::is_blameless(bool is_target, std::uint32_t api, const Finding& evidence) {
  const std::uint32_t ours = is_target ? api : alignment_.target_of[api];
  if (ours == kNone || !alignment_.has_golden(ours)) return false;
  const std::uint32_t backward = paths_.backward_of(ours);
  return backward != kNone && sends_back_golden(backward, evidence);
}

bool Suspects::sends_back_golden(std::uint32_t backward, const Finding& evidence) const {
  if (!alignment_.has_golden(backward)) return false;
  const double limit = walk_.threshold * (walk_.clean + std::max(evidence.u, history_.coarsest));
  bool known = false;
  for (const std::uint32_t i : target_.apis[backward].items()) {
    if (walk_.item_of(i).state != State::output || std::isnan(errors_.e[i])) continue;
    if (errors_.e[i] > limit) return false;
    known = true;
  }
  return known;
}

/// The nearest suspect on the way from `open`: along the values, or against them.
Suspects::Suspect Suspects::search(bool is_target, std::vector<std::uint32_t> open, const Finding& evidence,
                                   bool upstream) {
  const Graph& graph = graph_of(is_target);
  const Side& side = is_target ? target_ : golden_;
  std::unordered_set<std::uint32_t> seen(open.begin(), open.end());
  for (unsigned depth = 0; !open.empty() && seen.size() < kMostVisited; ++depth) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t api : open) {
      if (side.parsed_name(api).direction != Direction::forward) continue;
      const Suspect suspect = suspect_at(is_target, api);
      // Values that agree after a run show that it computes the same.
      if (suspect.hint != kNone || (suspect.run != nullptr && !upstream)) return suspect;
      const std::uint32_t ours = is_target ? api : alignment_.target_of[api];
      if (!upstream && ours != kNone && paths_.is_backward_one_sided(ours)) lost_.push_back(ours);
      if (!upstream && is_blameless(is_target, api, evidence)) continue;
      if (upstream && depth >= kMostBetween) continue;
      for (const std::uint32_t neighbour : upstream ? graph.producers[api] : graph.consumers[api]) {
        if (seen.insert(neighbour).second) next.push_back(neighbour);
      }
    }
    open = std::move(next);
  }
  return {};
}

/// Calls that take a parameter of the module whose gradients are wrong.
std::vector<std::uint32_t> Suspects::users_of_parameters(bool is_target, const Finding& evidence) const {
  const Side& side = is_target ? target_ : golden_;
  const ContentKeys& keys = is_target ? walk_.target_keys : walk_.golden_keys;
  const std::uint32_t gradients = is_target ? evidence.target_api : alignment_.golden_of[evidence.target_api];
  const dump::EntryName module = side.parsed_name(gradients);
  std::unordered_set<std::uint64_t> contents;
  for (std::uint32_t i = 0; i < side.items.size(); ++i) {
    if (side.items[i].state == State::parameters && side.parsed_name(side.items[i].api).base == module.base)
      contents.insert(keys.of(i));
  }
  contents.erase(0);
  std::vector<std::uint32_t> users;
  for (std::uint32_t api = 0; api < side.apis.size() && !contents.empty(); ++api) {
    if (has_one_of(keys, api, State::input, contents)) users.push_back(api);
  }
  return users;
}

/// Calls that take the gradient of a parameter: of any, or of one module's.
std::vector<std::uint32_t> Suspects::users_of_gradients(bool is_target, std::string_view module) const {
  const Side& side = is_target ? target_ : golden_;
  const ContentKeys& keys = is_target ? walk_.target_keys : walk_.golden_keys;
  std::unordered_set<std::uint64_t> contents;
  std::vector<std::uint32_t> users;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    bool takes = false;
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::uint64_t key = side.items[i].is_tensor ? keys.of(i) : 0;
      if (key == 0) continue;
      if (side.items[i].state == State::parameters_grad &&
          (module.empty() || side.parsed_name(api).base == module))
        contents.insert(key);
      takes = takes || (side.items[i].state == State::input && contents.contains(key));
    }
    if (takes) users.push_back(api);
  }
  return users;
}

Suspects::Suspect Suspects::first_run_of(bool is_target, const std::vector<std::uint32_t>& calls) {
  for (const std::uint32_t api : calls) {
    if (const Suspect suspect = suspect_at(is_target, api); suspect.run != nullptr)
      return {suspect.run, kNone};
  }
  return {};
}

/// The suspect of a gradient that is wrong where no recorded way leads to one: a run of one side between the
/// last backward that is right and this one, or a call whose input comes from unrecorded code and gets a
/// gradient on one side alone.
Suspects::Suspect Suspects::suspect_between(const Finding& evidence) {
  std::uint32_t right = kNone;
  const std::uint32_t steps = std::min(evidence.target_api, kMostBefore);
  for (std::uint32_t api = evidence.target_api; evidence.target_api - api < steps && right == kNone;) {
    const Direction direction = walk_.target.parsed_name(--api).direction;
    if (direction == Direction::backward && sends_back_golden(api, evidence)) right = api;
  }
  if (right != kNone) {
    if (OneSidedRuns::Run* run = runs_.last_between(walk_.order_of(right), evidence.order))
      return {run, kNone};
    // Look for the backward entries of a run.
    for (const bool is_target : {true, false}) {
      const std::uint32_t from = is_target ? right : alignment_.golden_of[right];
      const std::uint32_t to = is_target ? evidence.target_api : alignment_.golden_of[evidence.target_api];
      for (std::uint32_t api = from + 1; api < to; ++api) {
        const std::uint32_t forward = paths_.forward_of(is_target, api);
        if (forward == kNone) continue;
        OneSidedRuns::Run* const run =
            is_target ? runs_.run_of_target(forward) : runs_.run_of_golden(forward);
        if (run != nullptr) return {run, kNone};
      }
    }
  }
  if (OneSidedRuns::Run* run = collective_before(evidence)) return {run, kNone};
  if (evidence.kind != Kind::gradient) return {};
  return {nullptr, nearest_cut(evidence.target_api)};
}

/// The call with a gradient that one side alone gives back, whose backward is the last one up to an entry.
std::uint32_t Suspects::nearest_cut(std::uint32_t end) const {
  std::uint32_t nearest = kNone;
  std::uint32_t latest = 0;
  for (const std::uint32_t api : hints_) {
    const std::uint32_t backward = paths_.backward_of(api);
    if (backward == kNone || backward > end || !has_one_sided_gradient(backward)) continue;
    if (nearest == kNone || backward > latest) nearest = api, latest = backward;
  }
  return nearest;
}

/// The last collective that one side alone runs in the backward before a wrong gradient. A gradient that
/// comes another way may be added to its result before that is recorded.
OneSidedRuns::Run* Suspects::collective_before(const Finding& evidence) {
  if (walk_.target.parsed_name(evidence.target_api).direction != Direction::backward) return nullptr;
  const auto is_collective = [](const Side& side, const std::vector<std::uint32_t>& calls) {
    return !calls.empty() && pairing::is_communication(side.parsed_name(calls.front()).operation());
  };
  OneSidedRuns::Run* const run = runs_.last_between(walk_.order_of(first_backward(target_)), evidence.order);
  if (run == nullptr || run->target.empty() == run->golden.empty()) return nullptr;
  return is_collective(target_, run->target) || is_collective(golden_, run->golden) ? run : nullptr;
}

/// Whether a backward gives a gradient that golden's does not give, or the reverse.
bool Suspects::has_one_sided_gradient(std::uint32_t backward) const {
  if (!alignment_.has_golden(backward)) return false;
  const auto gradients = [](const Side& side, std::uint32_t api) {
    std::size_t count = 0;
    for (const std::uint32_t i : side.apis[api].items())
      count += side.items[i].state == State::output && side.items[i].is_tensor ? 1 : 0;
    return count;
  };
  return gradients(target_, backward) != gradients(golden_, alignment_.golden_of[backward]);
}

Suspects::Suspect Suspects::suspect_of(const Finding& evidence) {
  if (evidence.kind == Kind::optimizer && evidence.place == kLostGradients)
    return {nullptr, nearest_cut(kNone)};
  const bool between = is_between(evidence);
  if (!between && evidence.target_api == kNone) return {};
  // A running statistic is taken by another call than the one that left it.
  if (evidence.kind == Kind::parameter && evidence.item != kNone &&
      walk_.item_of(evidence.item).api != evidence.target_api)
    return {nullptr, hints_.contains(evidence.target_api) ? evidence.target_api : kNone};
  const auto direction =
      between ? Direction::parameters_grad : walk_.target.parsed_name(evidence.target_api).direction;
  for (const bool is_target : {true, false}) {
    Suspect found;
    if (between) {
      found = first_run_of(is_target, users_of_gradients(is_target, {}));
    } else if (direction == Direction::parameters_grad) {
      found = search(is_target, users_of_parameters(is_target, evidence), evidence, false);
      // A call may change a gradient before the next backward adds to it.
      const std::string_view module = walk_.target.parsed_name(evidence.target_api).base;
      if (!found) found = first_run_of(is_target, users_of_gradients(is_target, module));
    } else if (direction == Direction::backward) {
      if (evidence.kind != Kind::gradient) return {};
      const std::uint32_t forward = errors_.forward_of(evidence.target_api);
      if (forward == kNone || !alignment_.has_golden(forward)) return {};
      const std::uint32_t api = maker_of(is_target, is_target ? forward : alignment_.golden_of[forward]);
      found = search(is_target, graph_of(is_target).consumers[api], evidence, false);
      // A collective that one side alone runs in its backward hands the gradient on.
      const std::uint32_t at = is_target ? evidence.target_api : alignment_.golden_of[evidence.target_api];
      for (const std::uint32_t producer : graph_of(is_target).producers[at]) {
        const Suspect suspect = suspect_at(is_target, producer);
        if (!found && suspect.run != nullptr) found = suspect;
      }
    } else if (evidence.rule == Rule::introduced || evidence.rule == Rule::gain) {
      const std::uint32_t api = is_target ? evidence.target_api : alignment_.golden_of[evidence.target_api];
      found = search(is_target, graph_of(is_target).producers[api], evidence, true);
    }
    if (found) return found;
  }
  const bool gradient = direction == Direction::backward || evidence.rule == Rule::source;
  return gradient && !between ? suspect_between(evidence) : Suspect{};
}

/// Whether a tensor has another number of elements than golden's: its statistics may be the same all the
/// same, as those of a mask are.
bool Suspects::is_of_other_size(const Finding& found) const {
  const std::uint32_t partner = found.item == kNone ? kNone : errors_.golden_item[found.item];
  return partner != kNone && elements_of(target_.text(walk_.item_of(found.item).shape)) !=
                                 elements_of(golden_.text(golden_.items[partner].shape));
}

/// Whether the shape of a finding follows from an earlier call: a recorded call made the tensor, or an
/// argument differs before it in its module.
bool Suspects::is_passed_on(const Finding& found) const {
  const auto before = [&](const Finding& other) {
    return other.kind == Kind::argument && other.target_api < found.target_api &&
           other.module == found.module;
  };
  if (std::any_of(walk_.out.findings.begin(), walk_.out.findings.end(), before)) return true;
  if (walk_.item_of(found.item).state != State::input) return false;
  const std::uint32_t from = walk_.target_flow.find(walk_.target_keys.of(found.item));
  return from != ContentMap::kUnknown && target_.items[from].api < found.target_api;
}

double Suspects::error_of(const Finding& evidence) const {
  if (evidence.item != kNone) return walk_.e_of(evidence.item);
  double error = 0;
  if (evidence.target_api == kNone) return error;
  for (const std::uint32_t i : target_.apis[evidence.target_api].items())
    error = std::max(error, walk_.e_of(i));
  return error;
}

/// The difference in the step before whose result the entry takes; null if it takes no such result.
const Finding* Suspects::past_suspect(const Finding& evidence) const {
  if (evidence.target_api == kNone || evidence.kind == Kind::optimizer) return nullptr;
  const auto known = [&](std::uint64_t key) -> const Finding* {
    const auto found = history_.suspects.find(key);
    return found == history_.suspects.end() ? nullptr : &*found->second;
  };
  for (const Side* side : {&target_, &golden_}) {
    const std::uint32_t module =
        side == &target_ ? evidence.target_api : alignment_.golden_of[evidence.target_api];
    for (const dump::Item& buffer : side->buffers) {
      if (buffer.api != module || !evidence.place.starts_with("buffers.")) continue;
      if (const Finding* past = known(measuring::content_key(*side, buffer)); past != nullptr) return past;
    }
  }
  if (evidence.kind == Kind::parameter) {
    for (const std::uint64_t name : running_.names_at(evidence.target_api))
      if (const Finding* past = known(name); past != nullptr) return past;
  }
  for (const std::uint32_t i : target_.apis[evidence.target_api].items()) {
    const dump::Item& item = walk_.item_of(i);
    if (item.state == State::output || errors_.golden_item[i] == kNone) continue;
    for (const std::uint64_t key : {walk_.target_keys.of(i), walk_.golden_keys.of(errors_.golden_item[i])}) {
      if (const Finding* past = known(key); past != nullptr) return past;
    }
  }
  return nullptr;
}

/// Whether an output of a call differs from golden's by more than rounding, also where that is excused.
bool Suspects::differs(std::uint32_t target_api) const {
  for (const std::uint32_t i : target_.apis[target_api].items()) {
    const std::uint32_t partner = errors_.golden_item[i];
    const dump::Item& item = walk_.item_of(i);
    if (item.state != State::output || partner == kNone) continue;
    const double u = std::max(measuring::unit_roundoff(target_.text(item.dtype)), measuring::kSingleRoundoff);
    const auto measured =
        measuring::measure(target_, item, golden_, golden_.items[partner], errors_.tolerance_of(i, partner));
    if (measured.known && measured.e > walk_.threshold * kFew * u) return true;
  }
  return false;
}

/// Keeps the contents that calls make, and those that follow from them by calls whose outputs differ: a
/// module may keep them as its state.
void Suspects::keep_contents(bool is_target, std::vector<std::uint32_t> calls,
                             const std::shared_ptr<const Finding>& hint) {
  constexpr std::size_t kMostKept = 4096;
  const Side& side = is_target ? target_ : golden_;
  const ContentKeys& keys = is_target ? walk_.target_keys : walk_.golden_keys;
  std::unordered_set<std::uint32_t> seen(calls.begin(), calls.end());
  while (!calls.empty() && seen.size() < kMostVisited) {
    const std::uint32_t api = calls.back();
    calls.pop_back();
    for (const std::uint32_t i : side.apis[api].items()) {
      const bool kept = side.items[i].state == State::output && keys.of(i) != 0;
      if (kept && history_.suspects.size() < kMostKept) history_.suspects.emplace(keys.of(i), hint);
    }
    for (const std::uint32_t next : graph_of(is_target).consumers[api]) {
      const std::uint32_t ours = is_target ? next : alignment_.target_of[next];
      const bool other = ours == kNone || !alignment_.has_golden(ours) || differs(ours);
      if (other && !runs_.is_of_optimizer(is_target, next) && seen.insert(next).second) calls.push_back(next);
    }
  }
}

void Suspects::remember(const std::vector<Finding>& hints) {
  history_.suspects.clear();
  if (history_.ends || history_.evidence) return;
  std::unordered_map<std::string, std::shared_ptr<const Finding>> by_line;
  for (const Finding& hint : hints) {
    const bool alone = hint.kind == Kind::added || hint.kind == Kind::removed || hint.kind == Kind::exchanged;
    const bool given = hint.kind == Kind::argument && hint.target_api != kNone;
    const bool argument = given && differs(hint.target_api);
    const auto left = given ? running_.names_at(hint.target_api) : std::vector<std::uint64_t>();
    if (hint.is_evidence() || (!alone && !argument && left.empty())) continue;
    // One line changes many parameters: the finding names its first call.
    auto& shared = by_line.try_emplace(fmt::format("{}\n{}", name_of(hint.kind), hint.where)).first->second;
    if (!shared) shared = std::make_shared<const Finding>(hint);
    for (const std::uint64_t name : left) history_.suspects.emplace(name, shared);
    if (argument) {
      keep_contents(true, {hint.target_api}, shared);
      keep_contents(false, {alignment_.golden_of[hint.target_api]}, shared);
    }
    for (const OneSidedRuns::Run& run : runs_.runs()) {
      if (given || run.order != hint.order) continue;
      keep_contents(true, run.target, shared);
      keep_contents(false, run.golden, shared);
    }
  }
}

/// Where a recording was asked for some calls alone, what comes in from the others has its cause there, which
/// a difference of the code within may be as well.
void Suspects::prefer_recorded_code() {
  if (!walk_.golden_only.by_filter() && !walk_.target_only.by_filter()) return;
  std::vector<Finding>& findings = walk_.out.findings;
  const auto code = std::find_if(findings.begin(), findings.end(), [](const Finding& each) {
    return each.is_evidence() && each.rule == Rule::structure && each.kind == Kind::argument;
  });
  if (code == findings.end()) return;
  const std::uint64_t behind = code->order + 1;
  for (Finding& each : findings) {
    const bool comes_in = each.kind == Kind::unrecorded || each.kind == Kind::data;
    if (!comes_in || each.order >= behind) continue;
    each.downstream = true;
    each.order = behind;
  }
}

/// A call that is given the gradient of another pass explains what differs in later passes: one side adds to
/// what the call left.
void Suspects::prefer_other_pass() {
  std::vector<Finding>& findings = walk_.out.findings;
  const auto call = std::find_if(findings.begin(), findings.end(), [&](const Finding& each) {
    return each.is_evidence() && each.kind == Kind::feed && each.item != kNone &&
           walk_.gradient_items.find(walk_.target_keys.of(each.item)) != ContentMap::kUnknown;
  });
  if (call == findings.end()) return;
  const std::uint64_t behind = call->order + 1;
  for (Finding& each : findings) {
    if (each.rule < Rule::introduced || each.target_api == kNone) continue;
    const dump::EntryName name = walk_.target.parsed_name(each.target_api);
    if (name.direction != Direction::parameters_grad || name.call == "0") continue;
    each.downstream = true;
    each.order = std::max(each.order, behind);
  }
}

void Suspects::name() {
  if (walk_.options.without.contains(Rule::structure) || history_.evidence || walk_.other_operations) return;
  std::vector<Finding>& findings = walk_.out.findings;
  prefer_recorded_code();
  prefer_other_pass();
  std::vector<Finding> effects;
  for (const Finding& found : findings) {
    const bool given = found.kind == Kind::argument || found.kind == Kind::requires_grad ||
                       (found.kind == Kind::shape && is_of_other_size(found) && !is_passed_on(found));
    if (!found.is_evidence() && given && found.target_api != kNone) hints_.insert(found.target_api);
    if (found.is_evidence() && !found.downstream &&
        (is_by_values(found) || is_between(found) || found.place == kLostGradients))
      effects.push_back(found);
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [](const Finding& a, const Finding& b) { return a.order < b.order; });
  std::unordered_set<const OneSidedRuns::Run*> named;
  for (const Finding& effect : effects) {
    lost_.clear();
    const Suspect suspect = suspect_of(effect);
    const bool in_time = suspect.run != nullptr && (suspect.run->order <= effect.order || is_between(effect));
    if (in_time && !suspect.run->settled) {
      const std::uint64_t evidence = walk_.out.evidence;
      runs_.settle(*suspect.run, effect.entry, error_of(effect), walk_.clean);
      if (walk_.out.evidence > evidence) named.insert(suspect.run);
    }
    const auto same = [&](const Finding& other) {
      return other.order == effect.order && other.kind == effect.kind && other.entry == effect.entry;
    };
    bool explained = named.contains(suspect.run);
    if (suspect.hint != kNone) {
      const auto cause = std::find_if(findings.begin(), findings.end(), [&](const Finding& other) {
        return other.target_api == suspect.hint && other.rule == Rule::structure;
      });
      if (cause == findings.end() || cause->order > effect.order) continue;
      if (!cause->is_evidence()) {
        cause->confidence = effect.confidence;
        cause->text += fmt::format(", but at {}: {}", effect.entry, effect.text);
        ++walk_.out.evidence;
        walk_.fault_order = std::min(walk_.fault_order, cause->order);
      }
      explained = true;
    }
    if (!suspect) {
      std::sort(lost_.rbegin(), lost_.rend());
      lost_.erase(std::unique(lost_.begin(), lost_.end()), lost_.end());
      if (Finding cause = paths_.missing(lost_, effect, error_of(effect)); !cause.text.empty()) {
        walk_.keep(std::move(cause), walk_.clean);
        explained = true;
      } else if (const Finding* const past = past_suspect(effect)) {
        Finding then = *past;
        // Its numbers belong to entries of another step and mean other entries here.
        then.target_api = then.item = kNone;
        then.order = 0;
        then.confidence = effect.confidence;
        then.text = fmt::format("{}, but in the next step at {}: {}", with_effect(then.text), effect.entry,
                                effect.text);
        findings.push_back(std::move(then));
        ++walk_.out.evidence;
        explained = true;
      }
    }
    if (!explained) continue;
    for (Finding& each : findings) {
      if (!same(each)) continue;
      each.downstream = true;
      if (suspect.run != nullptr) each.order = std::max(each.order, suspect.run->order + 1);
    }
  }
}

}  // namespace msprobe::diagnosis
