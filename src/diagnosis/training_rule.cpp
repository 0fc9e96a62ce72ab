// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/training_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/optimizer_steps.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/settings.hpp"
#include "diagnosis/taken_gradients.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"
#include "pairing/updates.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::OptimizerGroup;
using dump::OptimizerSettings;
using dump::Side;
using dump::State;
using dump::Training;
using pairing::kNone;
using pairing::name_in_model;

/// These settings do not change what an optimizer computes: they choose how it computes, or a scheduler only
/// remembers them.
constexpr std::array<std::string_view, 6> kHow = {"foreach",        "fused",      "capturable",
                                                  "differentiable", "initial_lr", "base_lr"};
constexpr const char* kWhichParameters =
    "check which parameters the optimizer is given, and which are frozen";
constexpr std::string_view kClipping = "clip_grad";  // the parent of its calls
constexpr const char* kOtherFactors = "different factors, as clipping by value or averaging over ranks";
constexpr std::size_t kShownNames = 3;

const char* run(bool of_target) {
  return of_target ? "this run" : "golden";
}

std::string list_of(const std::vector<std::string>& names) {
  return diagnosis::list_of(names, kShownNames);
}

/// AdamW is Adam with another weight decay: without any, both do the same.
bool are_one_adam(const OptimizerSettings& target, const OptimizerSettings& golden) {
  const auto is_adam_without_decay = [](const OptimizerSettings& one) {
    return (one.name == "Adam" || one.name == "AdamW") && one.module.starts_with("torch.optim") &&
           std::ranges::all_of(one.groups, [](const OptimizerGroup& group) {
             const auto decay = group.settings.find("weight_decay");
             return decay != group.settings.end() && is_same_setting(decay->second, "0");
           });
  };
  return is_adam_without_decay(target) && is_adam_without_decay(golden);
}

/// Whether a name is one of several of a tied parameter, which an optimizer knows only by its first name.
bool is_other_name(const Training& training, const std::string& name) {
  const auto tied = training.tied.value_or(std::vector<std::vector<std::string>>{});
  return std::any_of(tied.begin(), tied.end(), [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

/// How many parameters of a model have these names.
std::size_t parameters_of(const Training& training, const std::vector<std::string>& names) {
  std::size_t count = names.size();
  for (const std::vector<std::string>& tied :
       training.tied.value_or(std::vector<std::vector<std::string>>{})) {
    const auto same =
        static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
          return std::find(tied.begin(), tied.end(), name) != tied.end();
        }));
    count -= std::max<std::size_t>(same, 1) - 1;
  }
  return count;
}

std::set<std::string> names_of(const Side& side, const Training& training) {
  std::set<std::string> names;
  for (const OptimizerSettings& optimizer : training.optimizers) {
    for (const OptimizerGroup& group : optimizer.groups)
      names.insert(group.parameters.begin(), group.parameters.end());
  }
  for (const dump::Item& item : side.items) {
    if (item.state != State::parameters) continue;
    names.insert(name_in_model(side, item));
  }
  for (const auto& tied : training.tied.value_or(std::vector<std::vector<std::string>>{}))
    names.insert(tied.begin(), tied.end());
  return names;
}

}  // namespace

/// The factors by which gradients change between backward and optimizer.
struct TrainingRule::Factors {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;

  void add(double factor) {
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  bool is_one() const { return most - least <= kAlike * most; }
  bool is_unchanged() const { return is_one() && std::abs(most - 1) <= kAlike; }
  std::string text() const {
    if (is_unchanged()) return "as the backward gave them";
    return is_one() ? fmt::format("{:.3g} times as large", most)
                    : fmt::format("{:.3g} to {:.3g} times as large", least, most);
  }
};

/// The first call that the recorder puts under `parent`, or kNone.
std::uint32_t TrainingRule::first_under(std::string_view parent, bool of_target) const {
  const Side& side = of_target ? target_ : golden_;
  const dump::ConstructTable* const construct = of_target ? walk_.construct : walk_.golden_construct;
  for (std::uint32_t api = 0; construct != nullptr && api < side.apis.size(); ++api) {
    if (construct->parent(side.text(side.apis[api].name)) == parent) return api;
  }
  return kNone;
}

/// Whether a side clips gradients after the first step of its optimizer.
bool TrainingRule::clips_late(bool of_target) const {
  const std::uint32_t clips = first_under(kClipping, of_target);
  return clips != kNone && first_under(pairing::kOptimizer, of_target) < clips;
}

/// Describes what clips gradients, or may: on one side, or on both; empty where nothing suggests it.
/// `ours`, `theirs`: the factors of `count` gradients.
std::string TrainingRule::clipping(const Factors& ours, const Factors& theirs, std::size_t count) const {
  const bool here = first_under(kClipping, true) != kNone;
  const bool there = first_under(kClipping, false) != kNone;
  const bool late = clips_late(true);
  if (here && there && late != clips_late(false))
    return fmt::format("between backward and optimizer, where {} clips, {} after the optimizer's step",
                       run(!late), run(late));
  // Clipping may be the same and its gradients not, as those that no rank reduced.
  if (here && there && ours.is_one() != theirs.is_one())
    return fmt::format(
        "between backward and optimizer, where both runs clip and {} changes gradients by {} does",
        run(theirs.is_one()), kOtherFactors);
  if (here && there) return "between backward and optimizer, where both runs clip";
  for (const bool target : {true, false}) {
    const Factors& changed = target ? ours : theirs;
    const Factors& left = target ? theirs : ours;
    if (!left.is_unchanged()) continue;
    if (target ? here : there)
      return fmt::format("{} clips gradients, {} does not", run(target), run(!target));
    if (count < kFewestCases || changed.most > 1 + kAlike) continue;
    return fmt::format("{} makes gradients smaller by {} does, {} does not", run(target),
                       changed.is_one() ? "one factor, as clipping by norm or a division" : kOtherFactors,
                       run(!target));
  }
  return {};
}

/// Names the call that clips gradients on one side alone, or the calls that do it at different places.
Finding TrainingRule::clipping_call() const {
  const std::uint32_t ours = first_under(kClipping, true);
  const std::uint32_t theirs = first_under(kClipping, false);
  Finding named;
  const bool one = (ours == kNone) != (theirs == kNone);
  if (one || clips_late(true) != clips_late(false)) walk_.name_places(named, ours, theirs);
  return named;
}

std::uint32_t TrainingRule::first_of_optimizer() const {
  const std::uint32_t first = std::min(first_under(kClipping, true), first_under(pairing::kOptimizer, true));
  return first != kNone ? first : behind_backward(target_);
}

/// The first call of the optimizer itself, behind those that clip gradients.
std::uint32_t TrainingRule::behind_clipping() const {
  const std::uint32_t step = first_under(pairing::kOptimizer, true);
  std::uint32_t behind = step != kNone ? step : behind_backward(target_);
  for (std::uint32_t api = 0; step == kNone && walk_.construct != nullptr && api < target_.apis.size();
       ++api) {
    if (walk_.construct->parent(walk_.target_name(api)) == kClipping) behind = std::max(behind, api + 1);
  }
  return behind;
}

/// Whether evidence shows another call, or another argument of a call, among those that clip gradients.
bool TrainingRule::is_clipped_otherwise() const {
  const std::uint64_t from = 2 * std::uint64_t{first_of_optimizer()};
  const std::uint64_t to = 2 * std::uint64_t{behind_clipping()};
  return std::any_of(walk_.out.findings.begin(), walk_.out.findings.end(), [&](const Finding& each) {
    return each.is_evidence() && each.rule == Rule::structure && each.kind != Kind::optimizer &&
           each.order >= from && each.order <= to;
  });
}

/// Reports a finding of this rule. `at`: the entry before which it applies.
void TrainingRule::found(std::uint32_t at, std::string text, std::size_t concerned, const About& about) {
  Finding finding;
  finding.kind = Kind::optimizer;
  finding.rule = Rule::structure;
  finding.confidence = about.confidence;
  finding.excess = measuring::kInfinite;
  // This order comes before the entries that golden alone has there, unless the finding follows from them.
  finding.order = 2 * std::uint64_t{at} - (at > 0 && !about.behind ? 1 : 0);
  finding.entry = "optimizer";
  finding.step = walk_.out.step;
  finding.rank = walk_.out.rank;
  finding.concerned = concerned;
  finding.text = std::move(text);
  finding.side = about.side;
  finding.next = about.next;
  finding.place = about.place;
  finding.where = about.at.where;
  finding.golden_entry = about.at.golden_entry;
  finding.downstream = about.downstream || history_.evidence;
  walk_.keep(std::move(finding), walk_.any_error());
}

void TrainingRule::compare_tied() {
  if (!target_training_.tied || !golden_training_.tied || history_.steps > 0) return;
  const auto only_in = [&](const Training& tied, const Training& apart, const Side& apart_side, bool ours) {
    const std::set<std::string> known = names_of(apart_side, apart);
    for (const std::vector<std::string>& names : *tied.tied) {
      const bool same = std::any_of(apart.tied->begin(), apart.tied->end(), [&](const auto& others) {
        return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return std::find(others.begin(), others.end(), name) != others.end();
        });
      });
      const bool all_there = std::all_of(names.begin(), names.end(),
                                         [&](const std::string& name) { return known.contains(name); });
      if (same || !all_there) continue;
      tied_.insert(names.begin(), names.end());
      found(0,
            fmt::format("{} are one parameter in {}, {} in {}", list_of(names), run(ours),
                        parameters_of(apart, names), run(!ours)),
            names.size(), {.next = "tie the weights on both sides, or on neither"});
    }
  };
  only_in(golden_training_, target_training_, target_, false);
  only_in(target_training_, golden_training_, golden_, true);
}

void TrainingRule::compare_optimizers() {
  const std::vector<OptimizerSettings>& ours = target_training_.optimizers;
  const std::vector<OptimizerSettings>& theirs = golden_training_.optimizers;
  bool alone = false;
  for (const SameSteps& steps : same_steps(ours, theirs)) {
    if (steps.ours.empty() || steps.theirs.empty()) {
      alone = true;
    } else {
      compare(joined_steps(ours, steps.ours), joined_steps(theirs, steps.theirs));
    }
  }
  if (alone && !ours.empty() && !theirs.empty())
    found(first_of_optimizer(),
          fmt::format("{} optimizer {} in this step, {} in golden", ours.size(),
                      ours.size() == 1 ? "step" : "steps", theirs.size()),
          1,
          {.side = "the code differs, not a kernel", .next = "check how often optimizer.step() is called"});
  const std::vector<TakenGradient> gradients = taken_gradients(target_, golden_, errors_.golden_item);
  compare_gradients(gradients);
  if (gradients.empty() || walk_.split_batch) compare_taken();
  compare_lost();
  compare_skipped();
  mark_consequences();
}

/// Where the gradients of parameters are not recorded (L1), only the optimizer's inputs are known. Reports
/// them if they differ although nothing in the backward does.
void TrainingRule::compare_taken() {
  const auto norms = taken_norms(target_, golden_);
  if (!norms || walk_.any_evidence || history_.evidence || walk_.drift) return;
  const auto& ours = norms->first;
  const auto& theirs = norms->second;
  const double largest =
      std::accumulate(theirs.begin(), theirs.end(), 0.0, [](double most, const auto& gradient) {
        return std::isfinite(gradient.second) ? std::max(most, gradient.second) : most;
      });
  const double explained = std::max({walk_.any_error(), largest_.rounded, largest_.coarsest, kAlike});
  std::vector<std::string> names;
  double most = 0;
  for (const auto& [name, norm] : theirs) {
    const auto other = ours.find(name);
    if (other == ours.end() || other->second == 0 || !(norm > kTrainedRoundingHalf * largest)) continue;
    const double apart = std::abs(other->second - norm) / norm;
    if (!std::isfinite(apart) || apart <= walk_.threshold * explained) continue;
    names.push_back(name);
    most = std::max(most, apart);
  }
  if (names.empty()) return;
  found(
      first_of_optimizer(),
      fmt::format(
          "the optimizer takes {} {} whose norms differ by up to {}; everything recorded in the backward by "
          "at most {}: {}",
          names.size(), names.size() == 1 ? "gradient" : "gradients", error_text(most),
          error_text(walk_.any_error()), list_of(names)),
      names.size(),
      {.side = {},
       .next = "compare what is done to gradients before optimizer.step(): zero_grad, clipping, scaling, "
               "reduction, hooks"});
}

/// Reports parameters whose gradient is missing or exactly zero on one side alone: it is cut off on its way.
/// A gradient that is nothing beside the others may be rounding.
void TrainingRule::compare_lost() {
  const auto norms = taken_norms(target_, golden_);
  if (!norms || history_.evidence || history_.flipped || walk_.flipped || walk_.split_batch ||
      walk_.part_updates || errors_.loss_scale)
    return;
  const auto& ours = norms->first;
  const auto& theirs = norms->second;
  const std::set<std::string> known = names_of(target_, target_training_);
  const std::set<std::string> golden_known = names_of(golden_, golden_training_);
  double largest = 0;
  for (const auto& [name, norm] : theirs) largest = std::isfinite(norm) ? std::max(largest, norm) : largest;
  const auto norm_in = [](const std::map<std::string, double>& of, const std::string& name) {
    const auto found = of.find(name);
    return found == of.end() ? 0 : found->second;
  };
  std::vector<std::string> here;  // the names of parameters whose gradient this run alone has
  std::vector<std::string> there;
  double most = 0;
  bool none = true;  // no gradient at all, rather than zeros
  for (const std::string& name : known) {
    const double our_norm = norm_in(ours, name);
    const double their_norm = norm_in(theirs, name);
    if (!golden_known.contains(name) || (our_norm == 0) == (their_norm == 0)) continue;
    if (!(std::max(our_norm, their_norm) > kRightKernel * largest)) continue;
    (our_norm == 0 ? there : here).push_back(name);
    none = none && !(our_norm == 0 ? ours : theirs).contains(name);
    most = std::max({most, our_norm, their_norm});
  }
  if (ours.empty() || theirs.empty()) return;
  const bool underflows = !none && history_.coarsest == kHalfRoundoff;
  for (const bool of_target : {false, true}) {
    const std::vector<std::string>& names = of_target ? here : there;
    if (names.empty()) continue;
    found(first_of_optimizer(),
          fmt::format("the optimizer of {} gets {} {}, that of {} one of norm {}{}", run(!of_target),
                      none ? "no gradient of" : "a gradient of zeros for", list_of(names), run(of_target),
                      error_text(most), underflows ? "; float16 may round it to 0" : ""),
          names.size(),
          {.confidence = underflows ? Confidence::hint : Confidence::likely,
           .side = "the code differs, not a kernel",
           .next = "compare on both sides where the gradient is cut off: detach(), .data, no_grad, "
                   "requires_grad, or set to zero",
           .place = std::string(kLostGradients),
           .downstream = walk_.any_evidence});
  }
}

/// Reports that one side skips the step because its loss scale is too large. This and the values that are not
/// finite come from the scale, not from an operation.
void TrainingRule::compare_skipped() {
  const auto& scale = errors_.loss_scale;
  if (!scale || scale->overflow == kNone) return;
  const auto scaled = [](double by) { return by > 0 ? fmt::format(" by {:g}", by) : std::string(); };
  const std::string text =
      scale->skips
          ? fmt::format(
                "gradients of the loss scaled{} overflow, and this step is skipped; golden, which scales{}, "
                "makes it",
                scaled(scale->target), scale->golden > 0 ? scaled(scale->golden) : " otherwise")
          : fmt::format("the loss is scaled{}, and this step made; golden{} skips it, as gradients overflow",
                        scaled(scale->target),
                        scale->golden > 0 ? ", which scales" + scaled(scale->golden) + "," : "");
  found(scale->overflow, text, 1,
        {.next = "begin with the same scale on both sides, or compare a step that both make"});
  for (Finding& each : walk_.out.findings)
    each.downstream = each.downstream || each.order > 2 * std::uint64_t{scale->overflow};
}

/// Whether both sides bring all recorded gradients together to one norm, as clipping by norm does: other
/// factors then follow from other gradients.
bool TrainingRule::make_one_norm(const Factors& ours, const Factors& theirs) const {
  if (!ours.is_one() || !theirs.is_one()) return false;
  const auto norm_of = [](const Side& side) {
    std::map<std::string, double> last;  // gradients that accumulate are recorded each time
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      if (side.parsed_name(api).direction != dump::Direction::parameters_grad) continue;
      for (const std::uint32_t i : side.apis[api].items())
        last[name_in_model(side, side.items[i])] = measuring::number_of(side, side.items[i], dump::kNorm);
    }
    double norm = 0;
    for (const auto& [name, each] : last) norm = std::hypot(norm, each);
    return norm;
  };
  const double here = ours.most * norm_of(target_);
  const double there = theirs.most * norm_of(golden_);
  return std::abs(here - there) <= kAlike * there;
}

/// Reports gradients that change between the backward and the optimizer on one side only: by clipping,
/// scaling or a reduction.
void TrainingRule::compare_gradients(const std::vector<TakenGradient>& gradients) {
  const std::map<std::string, TakenGradient> changes =
      changes_of(gradients, errors_, walk_.threshold).changed;
  if (changes.empty()) return;
  std::vector<std::string> names;
  Factors targets;
  Factors goldens;
  for (const auto& [name, change] : changes) {
    names.push_back(name);
    targets.add(change.target);
    goldens.add(change.golden);
    walk_.out.changed_gradients.push_back({name, {change.taken, change.golden_taken}});
  }
  walk_.out.one_factor = {targets.is_one(), goldens.is_one()};
  if (make_one_norm(targets, goldens)) return;
  const bool clipped = is_clipped_otherwise();
  const std::uint32_t at = clipped ? behind_clipping() : first_of_optimizer();
  // A call in between may be the reason, and after other evidence gradients may have wrong partners.
  const bool others =
      std::any_of(walk_.out.findings.begin(), walk_.out.findings.end(), [](const Finding& each) {
        return each.is_evidence() && each.kind != Kind::optimizer &&
               (each.rule == Rule::structure || each.rule == Rule::source);
      });
  const std::size_t n = names.size();
  const auto& scale = walk_.errors.loss_scale;
  const std::string scaled =
      scale && scale->target > 0 && scale->golden > 0
          ? fmt::format("; the loss is scaled by {:g}, in golden by {:g}", scale->target, scale->golden)
          : std::string();
  const std::string clips = clipping(targets, goldens, n);
  found(
      at,
      fmt::format("{}: the optimizer takes {} {} {}, in golden {}{}: {}",
                  clips.empty() ? "between backward and optimizer" : clips, n,
                  n == 1 ? "gradient" : "gradients", targets.text(), goldens.text(), scaled, list_of(names)),
      n,
      {.side = {},
       .next =
           "compare what is done to gradients before optimizer.step(): clipping, scaling, reduction, hooks",
       .place = std::string(kGradients),
       .at = clipping_call(),
       .downstream = others,
       .behind = clipped});
}

/// Whether a finding is about a parameter that only one side ties.
bool TrainingRule::is_tied(const Finding& found) const {
  if (tied_.empty() || found.kind != Kind::parameter || found.item == kNone) return false;
  const std::uint32_t item = walk_.parameter_items.find(walk_.target_keys.of(found.item));
  return item != ContentMap::kUnknown && tied_.contains(name_in_model(target_, target_.items[item]));
}

/// Marks findings that follow from a setting: the inputs and outputs of the optimizer follow from its
/// settings, and gradients of tied parameters from their sum.
void TrainingRule::mark_consequences() {
  std::optional<std::uint64_t> from;  // the order
  bool settings = false;
  for (const Finding& each : walk_.out.findings) {
    if (each.target_api != kNone || each.kind != Kind::optimizer) continue;
    // Changed gradients follow from calls before, which clip them otherwise.
    settings = settings || each.place != kGradients;
    from = std::min(from.value_or(each.order), each.order);
  }
  if (!from) return;
  if (settings) from = 2 * std::uint64_t{first_of_optimizer()};
  for (Finding& each : walk_.out.findings) {
    if (each.target_api == kNone) {
      // A call that golden's optimizer alone makes.
      each.downstream = each.downstream || (each.kind == Kind::removed && dump::is_of_optimizer(each.module));
      continue;
    }
    const dump::EntryName parsed = walk_.target.parsed_name(each.target_api);
    const bool of_optimizer = each.order > *from;
    const bool gradient = !tied_.empty() && parsed.direction != dump::Direction::forward;
    each.downstream = each.downstream || of_optimizer || gradient || is_tied(each);
  }
}

void TrainingRule::compare(const OptimizerSettings& target, const OptimizerSettings& golden) {
  const std::uint32_t at = first_of_optimizer();
  // Optimizers of other libraries may do the same under another name.
  const auto is_torchs = [](const OptimizerSettings& one) { return one.module.starts_with("torch.optim"); };
  if (target.name != golden.name && !are_one_adam(target, golden)) {
    found(at, fmt::format("the optimizer is {}, golden {}", target.name, golden.name), 1,
          {.confidence = is_torchs(target) && is_torchs(golden) ? Confidence::certain : Confidence::hint,
           .next = "use the same optimizer on both sides"});
  }
  GroupsByParameter ours = groups_by_parameter(target);
  GroupsByParameter theirs = groups_by_parameter(golden);
  const bool named = !ours.empty() && !theirs.empty();
  if (!named) {
    ours.clear();
    theirs.clear();
    const auto number = [](const OptimizerSettings& optimizer, GroupsByParameter& groups) {
      for (std::size_t i = 0; i < optimizer.groups.size(); ++i)
        groups[fmt::format("group {}", i)] = &optimizer.groups[i];
    };
    number(target, ours);
    number(golden, theirs);
  }
  // The parameters with a different setting, by its name and both values.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> others;
  std::vector<std::string> here_only;
  std::vector<std::string> there_only;
  std::size_t common = 0;
  for (const auto& [name, group] : ours) {
    const auto partner = theirs.find(name);
    if (partner == theirs.end()) {
      here_only.push_back(name);
      continue;
    }
    ++common;
    for (const auto& [key, value] : group->settings) {
      const auto other = partner->second->settings.find(key);
      // The name of the class already shows this setting.
      const bool how = (target.name != golden.name && key == "decoupled_weight_decay") ||
                       std::find(kHow.begin(), kHow.end(), key) != kHow.end();
      if (how || other == partner->second->settings.end() || is_same_setting(value, other->second)) continue;
      others[{key, value, other->second}].push_back(name);
    }
    const std::string& steps = group->steps;
    const std::string& golden_steps = partner->second->steps;
    if (!steps.empty() && !golden_steps.empty() && steps != golden_steps)
      others[{"the count of steps", steps, golden_steps}].push_back(name);
  }
  for (const auto& [name, group] : theirs) {
    if (!ours.contains(name)) there_only.push_back(name);
  }
  for (const auto& [difference, names] : others) {
    const auto& [key, value, golden_value] = difference;
    // An optimizer that calls another one passes its settings on, so that they are reported once.
    std::set<std::string>& said = said_[difference];
    if (std::includes(said.begin(), said.end(), names.begin(), names.end())) continue;
    said.insert(names.begin(), names.end());
    const std::string whose = names.size() == common
                                  ? fmt::format("all {} {}", common, named ? "parameters" : "groups")
                                  : fmt::format("{} of {} {}: {}", names.size(), common,
                                                named ? "parameters" : "groups", list_of(names));
    found(at,
          fmt::format("{}: {} is {}, golden {} ({})", target.name, key, shown_setting(value),
                      shown_setting(golden_value), whose),
          names.size(), {.next = "set it as in golden"});
  }
  // The optimizer does not explain another model, or other names of its parameters.
  if (!named) return;
  const std::set<std::string> known = names_of(target_, target_training_);
  const std::set<std::string> golden_known = names_of(golden_, golden_training_);
  // A parameter that no recorded module has, as the weight of a module that is never called, counts where one
  // side's optimizer takes its gradient and the other's has no parameter that might be the same.
  const auto is_trained = [](const GroupsByParameter& groups, const std::string& name) {
    const OptimizerGroup& group = *groups.at(name);
    const auto number = std::ranges::find(group.parameters, name) - group.parameters.begin();
    return number < std::ssize(group.gradient_norms) && group.gradient_norms[number] > 0;
  };
  const bool no_other_names = here_only.empty() || there_only.empty();
  bool by_name_alone = false;
  const auto leave_out = [&](std::vector<std::string>& only, const GroupsByParameter& groups,
                             const std::set<std::string>& of_other, const Training& training) {
    std::erase_if(only, [&](const std::string& name) {
      if (is_other_name(training, name)) return true;
      if (of_other.contains(name)) return false;
      by_name_alone = by_name_alone || (no_other_names && is_trained(groups, name));
      return !no_other_names || !is_trained(groups, name);
    });
  };
  leave_out(here_only, ours, golden_known, golden_training_);
  leave_out(there_only, theirs, known, target_training_);
  // Without a common parameter these are two optimizers, if both sides know the parameters of both.
  if (common == 0) {
    if (here_only.size() == ours.size() && there_only.size() == theirs.size())
      found(at,
            fmt::format("{} updates {}, where golden's updates {}", target.name, list_of(here_only),
                        list_of(there_only)),
            ours.size() + theirs.size(), {.next = kWhichParameters});
    return;
  }
  if (!here_only.empty())
    found(at, fmt::format("{} updates {}, golden's does not", target.name, list_of(here_only)),
          here_only.size(), {.next = kWhichParameters, .downstream = by_name_alone && walk_.any_evidence});
  if (!there_only.empty())
    found(at, fmt::format("golden's {} updates {}, this run's does not", golden.name, list_of(there_only)),
          there_only.size(), {.next = kWhichParameters, .downstream = by_name_alone && walk_.any_evidence});
}

}  // namespace msprobe::diagnosis
