// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/code_bases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/gradient_meetings.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/meeting_points.hpp"
#include "diagnosis/parameter_map.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/stretch.hpp"
#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "dump/stack_json.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;

/// The modules that have parameters of their own.
std::set<std::string> parameter_paths(const Side& side) {
  std::set<std::string> found;
  for (const Item& item : side.items) {
    if (item.state != State::parameters && item.state != State::parameters_grad) continue;
    found.insert(without_wrappers(module_path(side.text(side.apis[item.api].name))));
  }
  return found;
}

std::string call_of(const Side& side, std::uint32_t api) {
  const auto name = dump::parse_entry_name(side.text(side.apis[api].name));
  return name && !name->is_module && name->direction == Direction::forward ? std::string(name->base)
                                                                           : std::string();
}

/// One implementation.
class Implementation {
 public:
  Implementation(const Side& of, const Joins* joins,
                 const std::shared_ptr<const dump::ConstructBeside>& beside)
      : side(of),
        construct_(beside ? &beside->table() : nullptr),
        flow(forward_flow(of, joins, construct_)) {}

  std::string module(std::uint32_t call) const {
    const std::string entry = flow.name(call);
    const bool own = !module_path(entry).empty();
    return std::string(module_path(own || construct_ == nullptr ? entry : construct_->parent(entry)));
  }
  /// Contents that recorded calls put out, in the order of their entries.
  std::vector<std::uint32_t> made() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> by_entry;
    for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
      if (flow.is_made(i)) by_entry.emplace_back(flow.calls()[flow.contents()[i].maker], i);
    }
    std::sort(by_entry.begin(), by_entry.end());
    std::vector<std::uint32_t> found;
    for (const auto& [entry, content] : by_entry) found.push_back(content);
    return found;
  }
  /// The last call with an entry, or kNone.
  std::uint32_t last_recorded() const {
    auto call = static_cast<std::uint32_t>(flow.calls().size());
    while (call > 0 && !flow.is_recorded(call - 1)) --call;
    return call == 0 ? kNone : call - 1;
  }
  /// The entry that puts a content out, or the place where it is taken from unrecorded code.
  std::string name(std::uint32_t content) const {
    const Item& item = side.items[flow.contents()[content].item];
    return std::string(flow.is_made(content) ? side.text(side.apis[item.api].name) : side.name(item));
  }
  /// The first of these in the module of the last, for tables and masks stand ahead of it, else the first; of
  /// none the call that takes the content.
  std::uint32_t first_of(const std::vector<std::uint32_t>& calls, std::uint32_t content) const {
    const std::string last = calls.empty() ? std::string() : module(calls.back());
    for (const std::uint32_t call : calls) {
      if (!last.empty() && module(call).starts_with(last)) return call;
    }
    if (!calls.empty()) return calls.front();
    if (content == kNone) return kNone;
    for (const std::uint32_t taker : flow.takers(content)) {
      if (flow.is_recorded(taker)) return taker;
    }
    return kNone;
  }
  /// Of the gradients of all recorded parameters, each content once: how many elements, and their norm.
  std::pair<std::uint64_t, double> gradients() const {
    std::set<std::uint64_t> known;
    std::uint64_t elements = 0;
    double norm = 0;
    for (const Item& item : side.items) {
      const std::uint64_t key = item.state == State::parameters_grad ? content_key(side, item) : 0;
      if (key == 0 || !known.insert(key).second) continue;
      elements += elements_of(side.text(item.shape));
      norm = std::hypot(norm, number_of(side, item, dump::kNorm));
    }
    return {elements, norm};
  }
  /// `Tensor.add, Functional.gelu and 3 more`.
  std::string operations(const std::vector<std::uint32_t>& calls) const {
    constexpr std::size_t kShown = 6;
    std::string text;
    for (std::size_t i = 0; i < std::min(calls.size(), kShown); ++i) {
      const auto parsed = dump::parse_entry_name(side.text(side.apis[flow.calls()[calls[i]]].name));
      text += (text.empty() ? "" : ", ") + std::string(parsed->base);
    }
    if (calls.size() > kShown) text += fmt::format(" and {} more", calls.size() - kShown);
    return text.empty() ? "nothing" : text;
  }
  std::vector<std::string> names(const std::vector<std::uint32_t>& calls) const {
    std::vector<std::string> found;
    for (const std::uint32_t call : calls) found.push_back(flow.name(call));
    return found;
  }
  /// The largest unit roundoff: what is computed from half types has their rounding, whatever its type.
  double coarsest() const {
    double u = kSingleRoundoff;
    for (const Content& content : flow.contents()) u = std::max(u, content.u);
    return u;
  }

  const Side& side;

 private:
  const dump::ConstructTable* construct_;  // may be null

 public:
  const ContentFlow flow;  // of the forward
};

Allowance allowance_of(double u, double drift) {
  // Single elements of half types are off by their rounding, norms are not.
  if (is_half(u)) return {kUnrecordedRoundings * u + drift, kMostOfEqual + drift};
  return {kRoundingsOfPort * u + drift, kRoundingsOfPort * u + drift};
}

/// See partners_by_content().
std::vector<std::uint32_t> partners_of(const Implementation& ours, const Implementation& theirs,
                                       const ParameterMap& parameters, const Meetings& meetings) {
  // Golden's items by content and role, the first of each; gradients by the parameter.
  std::map<std::pair<std::uint32_t, State>, std::uint32_t> golden_items;
  std::map<std::string, std::uint32_t> gradients;
  for (std::uint32_t i = 0; i < theirs.side.items.size(); ++i) {
    const Item& item = theirs.side.items[i];
    const std::uint32_t content = theirs.flow.content_of(i);
    if (content != kNone) golden_items.emplace(std::make_pair(content, item.state), i);
    if (item.state == State::parameters_grad) gradients.emplace(name_in_model(theirs.side, item), i);
  }
  std::map<std::string, std::string> parameter_of;  // of golden, by that under test
  for (const ParameterGroup& group : parameters.groups) {
    if (group.ours.size() == 1 && group.theirs.size() == 1)
      parameter_of[parameter_name(ours.flow, group.ours[0])] = parameter_name(theirs.flow, group.theirs[0]);
  }
  std::vector<std::uint32_t> partners(ours.side.items.size(), kNone);
  for (std::uint32_t i = 0; i < partners.size(); ++i) {
    const Item& item = ours.side.items[i];
    if (item.state == State::parameters_grad) {
      const auto parameter = parameter_of.find(name_in_model(ours.side, item));
      const auto gradient =
          parameter == parameter_of.end() ? gradients.end() : gradients.find(parameter->second);
      if (gradient != gradients.end()) partners[i] = gradient->second;
      continue;
    }
    const std::uint32_t content = ours.flow.content_of(i);
    const std::uint32_t golden = content == kNone ? kNone : meetings.golden_of[content];
    if (golden == kNone) continue;
    const auto same_role = golden_items.find({golden, item.state});
    partners[i] = same_role == golden_items.end() ? theirs.flow.contents()[golden].item : same_role->second;
  }
  return partners;
}

/// Two implementations against each other, in one step of one rank.
class Comparison {
 public:
  Comparison(const measuring::MeasuredRank& rank, const std::vector<std::string>& frames, History& history)
      : rank_(rank),
        frames_(frames),
        history_(history),
        ours_(rank.target, rank.target_joins.get(), rank.target_construct),
        theirs_(rank.golden, rank.golden_joins.get(), rank.golden_construct),
        drift_(history.steps == 0 ? 0 : kDriftOfStep),
        parameters_(
            map_parameters(ours_.flow, theirs_.flow,
                           allowance_of(std::max(ours_.coarsest(), theirs_.coarsest()), drift_).norm)),
        meetings_(meet(ours_.flow, theirs_.flow, parameters_,
                       allowance_of(std::max(ours_.coarsest(), theirs_.coarsest()), drift_))) {}

  RankDiagnosis run() {
    out_.step = rank_.step;
    out_.rank = rank_.rank;
    out_.number = rank_.number;
    out_.tensors = rank_.mode == measuring::Mode::tensor;
    out_.threshold = out_.tensors ? kThresholdTensors : kThresholdStatistics;
    out_.looked_at = static_cast<std::uint32_t>(ours_.side.apis.size());
    fill_rows();
    std::string gradients;
    std::uint32_t last = kNone;
    if (ours_.flow.first_nan() != kNone && theirs_.flow.first_nan() == kNone) {
      keep_nan();
    } else if (agrees_to_the_end()) {
      gradients = compare_gradients();
    } else if (const auto stretch = find_stretch(ours_.flow, theirs_.flow, parameters_, meetings_)) {
      last = stretch->agrees;
      keep(*stretch);
    } else if (!ours_.flow.calls().empty() && !theirs_.flow.calls().empty()) {
      const std::vector<std::uint32_t> made = ours_.made();
      gradients = !made.empty() && meets(made.back())
                      ? "; nothing else near the end agrees"
                      : "; how both go on from there, to the loss, is not compared";
      if (rank_.target_joins || rank_.golden_joins) gradients += compare_gradients();
    }
    out_.agreement = agreement(last) + gradients;
    out_.notes.emplace_back(
        are_two_layouts(rank_)
            ? "two parallel layouts: what ranks hold parts of is compared as a whole, and nothing by name"
            : "two code bases: they have too little in common to be compared by name; what lies between two "
              "places where they agree is not compared");
    note_parameters();
    note_drift();
    for (const Origin origin : out_.origin) ++out_.counts[static_cast<std::size_t>(origin)];
    out_.evidence = static_cast<std::uint64_t>(std::count_if(
        out_.findings.begin(), out_.findings.end(), [](const Finding& each) { return each.is_evidence(); }));
    history_.evidence = history_.evidence || out_.evidence > 0;
    ++history_.steps;
    return std::move(out_);
  }

  /// Is what names show in the stretch, as the entry, its module, or one that puts out the same? Or a
  /// parameter that the other side has nowhere?
  bool confirms(const RankDiagnosis& by_content, const Finding& by_name) const {
    if (by_name.kind == Kind::parameter) {
      for (const std::uint32_t content : parameters_.ours_alone) {
        if (parameter_place(ours_.flow, content) == by_name.item) return true;
      }
    }
    if (by_content.findings.empty()) return false;
    const Finding& stretch = by_content.findings.front();
    const auto& operations = stretch.operations;
    if (std::find(operations.begin(), operations.end(), by_name.entry) != operations.end()) return true;
    if (!stretch.module.empty() &&
        (stretch.module == by_name.module || stretch.module == module_path(by_name.entry)))
      return true;
    return stretch.target_api != kNone && by_name.target_api != kNone &&
           put_out_the_same(stretch.target_api, by_name.target_api);
  }

 private:
  bool put_out_the_same(std::uint32_t one, std::uint32_t other) const {
    const Side& side = ours_.side;
    std::set<std::uint64_t> keys;
    for (const std::uint32_t i : side.apis[one].items()) {
      if (side.items[i].state == State::output) keys.insert(content_key(side, side.items[i]));
    }
    keys.erase(0);
    for (const std::uint32_t i : side.apis[other].items()) {
      if (side.items[i].state == State::output && keys.contains(content_key(side, side.items[i])))
        return true;
    }
    return false;
  }

  bool meets(std::uint32_t content) const { return meetings_.golden_of[content] != kNone; }

 public:
  /// Nothing is computed in half types.
  bool is_exact() const { return !is_half(std::max(ours_.coarsest(), theirs_.coarsest())); }
  /// The last that is put out, on one side, and another one near it. A loss alone may be equal by chance, or
  /// to the rounding of half types.
  bool agrees_to_the_end() const {
    constexpr std::size_t kLastPlaces = 8;
    const std::vector<std::uint32_t> made = ours_.made();
    const std::vector<std::uint32_t> golden_made = theirs_.made();
    if (made.empty() || golden_made.empty()) return false;
    if (!meets(made.back()) && !meetings_.golden_meets[golden_made.back()]) return false;
    std::size_t near = 0;
    for (std::size_t i = made.size() - std::min(made.size(), kLastPlaces); i < made.size(); ++i)
      near += meets(made[i]) ? 1 : 0;
    return near >= 2;
  }

 private:
  /// Outputs that are the same; of the others nothing is known.
  void fill_rows() {
    out_.golden_item = partners_of(ours_, theirs_, parameters_, meetings_);
    out_.error.resize(ours_.side.items.size(), NAN);
    out_.explained.resize(ours_.side.items.size(), NAN);
    out_.origin.resize(ours_.side.items.size(), Origin::not_compared);
    for (std::uint32_t item = 0; item < out_.origin.size(); ++item) {
      const std::uint32_t content = ours_.flow.content_of(item);
      if (content == kNone || !meets(content)) continue;
      const double error = meetings_.error[content];
      out_.origin[item] = error == 0 ? Origin::equal : Origin::rounding;
      out_.error[item] = static_cast<float>(error);
      ++out_.measured;
    }
    for (const std::uint32_t content : ours_.made()) {
      if (meets(content))
        out_.meeting_points.push_back(
            {ours_.name(content), theirs_.name(meetings_.golden_of[content]), meetings_.error[content]});
    }
  }

  /// `last`: the last content that counts; kNone: all do.
  std::string agreement(std::uint32_t last) const {
    std::uint32_t first = kNone;
    std::uint32_t end = kNone;
    std::uint64_t places = 0;
    for (const std::uint32_t i : ours_.made()) {
      if (!meets(i) || (last != kNone && i > last)) continue;
      first = first == kNone ? i : first;
      end = i;
      ++places;
    }
    if (first == kNone) return "the implementations agree nowhere";
    return fmt::format("both implementations agree at {} of {} places, from {} to {}", human_count(places),
                       human_count(ours_.made().size()), ours_.name(first), ours_.name(end));
  }

  void keep(const Stretch& stretch) {
    Finding found;
    const std::uint32_t golden_agrees = stretch.agrees == kNone ? kNone : meetings_.golden_of[stretch.agrees];
    const std::string golden_module =
        stretch.golden_calls.empty() ? "" : theirs_.module(stretch.golden_calls.back());
    found.text = stretch.agrees == kNone
                     ? "nothing that it takes agrees"
                     : fmt::format("both agree up to {} (golden {})", ours_.name(stretch.agrees),
                                   theirs_.name(golden_agrees));
    found.text += fmt::format("; from there this run computes {}", ours_.operations(stretch.calls));
    found.text +=
        stretch.golden_calls.empty()
            ? ", and what of golden should be the same is not known"
            : fmt::format(", golden{} {}", golden_module.empty() ? "" : fmt::format(" in {}", golden_module),
                          theirs_.operations(stretch.golden_calls));
    if (stretch.golden_differs != kNone)
      found.text += fmt::format(", which should be the same at {} (golden {}){}", ours_.name(stretch.differs),
                                theirs_.name(stretch.golden_differs),
                                std::isnan(stretch.error) ? "" : ": error " + error_text(stretch.error));
    found.text += lone_parameter_of(stretch) + other_data();
    found.operations = ours_.names(stretch.calls);
    found.golden_operations = theirs_.names(stretch.golden_calls);
    keep(std::move(found), ours_.first_of(stretch.calls, stretch.differs),
         theirs_.first_of(stretch.golden_calls, stretch.golden_differs));
  }

  /// Nothing is known of what follows.
  void keep_nan() {
    const std::uint32_t api = ours_.flow.first_nan();
    const std::string entry(ours_.side.text(ours_.side.apis[api].name));
    Finding found;
    found.text = "puts out NaN, which golden has nowhere; what follows is not compared";
    found.operations = {entry};
    found.target_api = api;
    for (const std::uint32_t i : ours_.side.apis[api].items()) {
      if (ours_.side.items[i].state == State::output) found.item = i;
    }
    keep_at(std::move(found), kNone);
  }

  /// A parameter that the calls of a stretch take and golden has nowhere, for the sentence about it.
  std::string lone_parameter_of(const Stretch& stretch) const {
    for (const std::uint32_t call : stretch.calls) {
      for (const std::uint32_t taken : ours_.flow.taken(call)) {
        const auto& alone = parameters_.ours_alone;
        if (std::find(alone.begin(), alone.end(), taken) != alone.end())
          return fmt::format("; golden has no parameter like {}, which it takes",
                             parameter_name(ours_.flow, taken));
      }
    }
    return {};
  }

  /// Whole numbers that come from outside, as token ids, and that the other side does not get; for a
  /// sentence.
  std::string other_data() const {
    constexpr std::size_t kMostLooks = 256;
    const auto from_outside = [](const ContentFlow& flow, const auto& agrees) {
      std::vector<std::uint32_t> found;
      for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
        const Content& content = flow.contents()[i];
        const bool other = content.maker == kNone && content.u == 0 && content.elements > 1 && !agrees(i);
        if (other && found.size() < kMostLooks) found.push_back(i);
      }
      return found;
    };
    const auto ours = from_outside(ours_.flow, [&](std::uint32_t i) { return meets(i); });
    const auto theirs =
        from_outside(theirs_.flow, [&](std::uint32_t i) { return meetings_.golden_meets[i]; });
    for (const std::uint32_t one : ours) {
      for (const std::uint32_t other : theirs) {
        if (ours_.flow.contents()[one].elements == theirs_.flow.contents()[other].elements)
          return fmt::format("; other data comes in: {} is not golden's {}", ours_.name(one),
                             theirs_.name(other));
      }
    }
    return parameters_.groups.empty() && !parameters_.ours_alone.empty() && !parameters_.theirs_alone.empty()
               ? "; no parameter is one of golden's: the weights differ"
               : "";
  }

  /// Parameters that the other side has in another form, or that are wrong.
  void note_parameters() {
    const auto& ours = parameters_.ours_alone;
    const auto& theirs = parameters_.theirs_alone;
    // Behind an update all are off by its rounding.
    if (ours.empty() || theirs.empty() || parameters_.groups.empty() || history_.steps > 0) return;
    out_.notes.push_back(
        fmt::format("by content, {} of this run's parameters and {} of golden's have no partner, as {} and "
                    "{} (--map-parameters lists them)",
                    human_count(ours.size()), human_count(theirs.size()),
                    parameter_name(ours_.flow, ours.front()), parameter_name(theirs_.flow, theirs.front())));
  }

  /// The gradients of a parameter, each content once.
  using Gradients = std::vector<Content>;

  /// By the parameter's content: of each rank for itself, as stages of a pipeline call other parameters
  /// alike.
  static std::map<std::uint32_t, Gradients> gradients_of(const Implementation& side) {
    std::map<std::uint32_t, Gradients> gradients;
    for (std::uint32_t rank = 0; rank < side.flow.ranks(); ++rank) {
      std::map<std::string, std::uint32_t> content_of;  // by the parameter's name
      for (std::uint32_t i = 0; i < side.side.items.size(); ++i) {
        const std::uint32_t content = side.flow.content_of(i, rank);
        if (side.side.items[i].state != State::parameters || content == kNone) continue;
        content_of.emplace(name_in_model(side.side, side.side.items[i]), content);
        gradients[content];
      }
      for (std::uint32_t i = 0; i < side.side.items.size(); ++i) {
        if (side.side.items[i].state != State::parameters_grad) continue;
        const auto content = content_of.find(name_in_model(side.side, side.side.items[i]));
        const auto gradient = side.flow.described(i, rank);
        if (content == content_of.end() || !gradient) continue;
        // Modules that share a parameter have one gradient, and so have ranks with copies.
        Gradients& known = gradients[content->second];
        if (std::none_of(known.begin(), known.end(),
                         [&](const Content& each) { return is_same(each, *gradient); }))
          known.push_back(*gradient);
      }
    }
    return gradients;
  }

  /// Each parameter's only gradient, of all put together; nothing if one has none or several.
  static std::optional<Content> joined_gradient(const std::vector<Gradients>& each) {
    std::optional<Content> all;
    for (const Gradients& gradients : each) {
      if (gradients.size() != 1) return std::nullopt;
      all = all ? joined(*all, gradients.front()) : gradients.front();
    }
    return all;
  }

  /// Those of a group's parameters, or of the parts that ranks hold of them; empty if one is not known.
  static std::vector<Gradients> of_all(const Implementation& side,
                                       const std::map<std::uint32_t, Gradients>& gradients,
                                       const std::vector<std::uint32_t>& contents) {
    std::vector<Gradients> found;
    for (const std::uint32_t content : contents) {
      const auto own = gradients.find(content);
      if (own != gradients.end()) {
        found.push_back(own->second);
        continue;
      }
      const std::size_t before = found.size();
      for (const Joint& joint : side.flow.joints()) {
        const auto part = joint.whole == content ? gradients.find(joint.part) : gradients.end();
        if (part != gradients.end()) found.push_back(part->second);
      }
      if (found.size() == before) return {};
    }
    return found;
  }

  /// What is said of the gradients of parameters that both sides have; empty if they may be the same. By
  /// parameter of the group.
  std::string other_gradient(const std::vector<Gradients>& ours, const std::vector<Gradients>& theirs,
                             double least_size, double most) const {
    const bool whole = ours_.flow.ranks() == 1 && theirs_.flow.ranks() == 1;
    if (whole && ours.size() == 1 && theirs.size() == 1) {
      const std::size_t here = ours[0].size();
      const std::size_t there = theirs[0].size();
      if (here == 0 && there > 0) return "has no gradient, golden's has one";
      if (here > 0 && there == 0) return "has a gradient, golden's has none";
      if (here != there)
        return fmt::format("has {} gradients here, {} in golden: one side alone ties weights", here, there);
    }
    const auto gradient = joined_gradient(ours);
    const auto golden = joined_gradient(theirs);
    if (!gradient || !golden || !golden->is_finite()) return {};
    // A gradient that cancels, as that of the bias of attention's keys, is rounding.
    const double size = golden->norm / std::sqrt(static_cast<double>(golden->elements));
    const double error = error_between(*gradient, *golden);
    if (!(size >= least_size) || !(error > most)) return {};
    return fmt::format("has another gradient: error {}", error_text(error));
  }

  /// By each parameter that both sides have as one; true if one differs, which then is evidence.
  bool compare_parameter_gradients() {
    const auto ours = gradients_of(ours_);
    const auto theirs = gradients_of(theirs_);
    std::vector<double> sizes;
    for (const auto& [content, gradients] : theirs) {
      for (const Content& each : gradients)
        sizes.push_back(each.norm / std::sqrt(static_cast<double>(each.elements)));
    }
    const bool any =
        std::any_of(ours.begin(), ours.end(), [](const auto& each) { return !each.second.empty(); });
    const bool once = ours_.flow.micro_batches() == 1 && theirs_.flow.micro_batches() == 1;
    if (sizes.empty() || !any || !once) return false;
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2),
                     sizes.end());
    const double least_size = kLeastGradient * sizes[sizes.size() / 2];
    const bool half = is_half(std::max(ours_.coarsest(), theirs_.coarsest()));
    const double most = kOtherGradient * ((half ? kGradientOfPortHalf : kGradientOfPort) + drift_);
    std::uint32_t last = kNone;  // the nearest to the loss
    std::string said;
    gradients_compared_ = gradients_unknown_ = 0;
    for (const ParameterGroup& group : parameters_.groups) {
      const auto here = of_all(ours_, ours, group.ours);
      const auto there = of_all(theirs_, theirs, group.theirs);
      if (here.empty() || there.empty()) continue;
      const bool known = joined_gradient(here) && joined_gradient(there);
      ++(known ? gradients_compared_ : gradients_unknown_);
      const std::string found = other_gradient(here, there, least_size, most);
      if (found.empty() || (last != kNone && group.ours.front() < last)) continue;
      last = group.ours.front();
      said = found;
    }
    if (last == kNone) return false;
    Finding found;
    found.text = fmt::format(
        "the forward agrees; its parameter {} (golden {}) {}", parameter_name(ours_.flow, last),
        parameter_name(theirs_.flow, parameters_.groups[parameters_.group_of[last]].theirs.front()), said);
    found.next = "compare which parameters are trained, tied or detached on both sides";
    const std::uint32_t call = ours_.first_of({}, last);
    if (call == kNone) return false;
    found.operations = {ours_.flow.name(call)};
    keep(std::move(found), call, kNone);
    return true;
  }

  /// Behind an update: parameters that it has made other ones of.
  void note_drift() {
    if (history_.steps == 0) return;
    double largest = 0;
    std::uint32_t where = kNone;
    for (const ParameterGroup& group : parameters_.groups) {
      if (group.ours.size() != 1 || group.theirs.size() != 1) continue;
      const double error =
          error_between(ours_.flow.contents()[group.ours[0]], theirs_.flow.contents()[group.theirs[0]]);
      if (!(error > largest)) continue;
      largest = error;
      where = group.ours[0];
    }
    if (largest <= kRoundingsOfPort * kSingleRoundoff) return;
    out_.notes.push_back(fmt::format(
        "{}: parameters differ by up to {}, as {}, after the updates before it: compare the optimizers if "
        "that is more than rounding makes; smaller errors in this step are not seen",
        out_.step.empty() ? "this step" : out_.step, error_text(largest), parameter_name(ours_.flow, where)));
  }

  /// By what each content has, and by the norm of all parameters' together; how they agree, for a note.
  std::string compare_gradients() {
    // What arrives at a part of a call is not known for the whole.
    if (rank_.target_joins || rank_.golden_joins) {
      if (compare_parameter_gradients()) return {};
      if (gradients_compared_ == 0) return "; gradients are not compared";
      return fmt::format(
          "; the gradients of {} parameters agree{}", human_count(gradients_compared_),
          gradients_unknown_ == 0
              ? ""
              : fmt::format(", those of {} differ between ranks: not reduced, or recorded before they are",
                            human_count(gradients_unknown_)));
    }
    const GradientMeetings met = meet_gradients(ours_.flow, theirs_.flow, parameters_, meetings_, drift_);
    if (!met.calls.empty()) {
      Finding found;
      found.text = fmt::format(
          "the forward agrees; the gradient of {} (golden {}) differs by {}, and those behind its calls {} "
          "do not",
          ours_.name(met.differs), theirs_.name(met.golden_differs), error_text(met.error),
          ours_.operations(met.calls));
      found.operations = ours_.names(met.calls);
      found.next = "compare the code of these calls on both sides: detached tensors, custom gradients, hooks";
      keep(std::move(found), met.calls.front(), theirs_.first_of({}, met.golden_differs));
      return {};
    }
    if (compare_parameter_gradients()) return {};
    const auto [elements, norm] = ours_.gradients();
    const auto [golden_elements, golden_norm] = theirs_.gradients();
    // Of parameters that are no module's, none is recorded.
    if (elements == 0 || elements != golden_elements)
      return met.equal == 0 ? "; gradients are not compared"
                            : fmt::format("; the gradients agree at {} of them", human_count(met.equal));
    if (std::abs(norm - golden_norm) <= (kMostOfGradients + drift_) * golden_norm)
      return ", and so do the gradients of all parameters together";
    Finding found;
    found.text = fmt::format(
        "the forward agrees, and the gradients of all parameters together do not: norm {:.6g}, golden {:.6g}",
        norm, golden_norm);
    found.next = "compare what takes part in the backward on both sides: detached tensors, custom gradients";
    found.operations = {std::string(kGradients)};
    keep(std::move(found), ours_.last_recorded(), theirs_.last_recorded());
    return {};
  }

  /// Of calls; kNone: there is none.
  void keep(Finding found, std::uint32_t call, std::uint32_t golden_call) {
    if (call == kNone) return;
    found.target_api = ours_.flow.calls()[call];
    found.item = ours_.flow.contents()[ours_.flow.given(call).front()].item;
    found.module = ours_.module(call);
    keep_at(std::move(found), golden_call);
  }

  void keep_at(Finding found, std::uint32_t golden_call) {
    found.kind = Kind::stretch;
    found.rule = Rule::source;
    found.confidence =
        found.operations.empty() && found.golden_operations.empty() ? Confidence::hint : Confidence::likely;
    found.excess = kInfinite;
    found.order = 2 * std::uint64_t{found.target_api} + 1;
    found.entry = std::string(ours_.side.text(ours_.side.apis[found.target_api].name));
    if (golden_call != kNone) {
      found.golden_entry = theirs_.flow.name(golden_call);
      found.golden_where = golden_line(found.golden_entry);
    }
    found.step = out_.step;
    found.rank = out_.rank;
    found.downstream = history_.evidence;
    if (found.next.empty()) found.next = advice(found, out_.tensors);
    if (ours_.side.stacks) {
      if (const auto* stack = ours_.side.stacks->find(found.entry))
        found.where = dump::user_frame(*stack, frames_);
    }
    if (found.is_evidence()) out_.origin[found.item] = Origin::introduced;
    out_.findings.push_back(std::move(found));
  }

  /// Golden's stacks are read for this alone.
  std::string golden_line(const std::string& entry) const {
    if (rank_.golden.json.empty()) return {};
    const std::string path = (std::filesystem::path(rank_.golden.json).parent_path() / "stack.json").string();
    try {
      const auto stacks = dump::read_stacks_if_any(path);
      const auto* const stack = stacks ? stacks->find(entry) : nullptr;
      return stack == nullptr ? std::string() : dump::user_frame(*stack, frames_);
    } catch (const Error& error) {
      log_warning(error.what());
      return {};
    }
  }

  const measuring::MeasuredRank& rank_;
  const std::vector<std::string>& frames_;
  History& history_;
  Implementation ours_;
  Implementation theirs_;
  double drift_;
  ParameterMap parameters_;
  Meetings meetings_;
  std::uint64_t gradients_compared_ = 0;  // of parameters
  std::uint64_t gradients_unknown_ = 0;
  RankDiagnosis out_;
};

}  // namespace

namespace {

/// Do many calls that pair take parameters of other sizes, as joined projections?
bool take_other_parameters(const measuring::MeasuredRank& rank) {
  const auto elements_taken = [](const Side& side, std::uint32_t api) {
    const auto name = dump::parse_entry_name(side.text(side.apis[api].name));
    std::uint64_t elements = 0;
    for (const std::uint32_t i : side.apis[api].items()) {
      const auto position = position_of(side, side.items[i]);
      if (side.items[i].state == State::input && side.items[i].is_tensor && position &&
          is_parameter_position(name->operation(), *position))
        elements += elements_of(side.text(side.items[i].shape));
    }
    return elements;
  };
  std::size_t calls = 0;
  std::size_t other = 0;
  for (std::uint32_t api = 0; api < rank.target.apis.size(); ++api) {
    const std::uint32_t partner = rank.alignment->golden_of[api];
    if (partner == kNone || call_of(rank.target, api).empty() || call_of(rank.golden, partner).empty())
      continue;
    const std::uint64_t ours = elements_taken(rank.target, api);
    const std::uint64_t theirs = elements_taken(rank.golden, partner);
    if (ours == 0 || theirs == 0) continue;
    ++calls;
    other += ours == theirs ? 0 : 1;
  }
  return other >= kFewestOtherParameters &&
         static_cast<double>(other) >= kOtherParameters * static_cast<double>(calls);
}

}  // namespace

bool are_two_code_bases(const measuring::MeasuredRank& rank) {
  const std::set<std::string> ours = parameter_paths(rank.target);
  const std::set<std::string> theirs = parameter_paths(rank.golden);
  const std::size_t fewest = std::min(ours.size(), theirs.size());
  const std::size_t most_modules = std::max(ours.size(), theirs.size());
  if (of_other_operations(rank.target, rank.golden)) return false;
  const auto common =
      std::count_if(ours.begin(), ours.end(), [&](const std::string& path) { return theirs.contains(path); });
  // Where one side records no modules, or has none, they have nothing in common.
  const bool by_modules = fewest >= kFewestModules || (fewest == 0 && most_modules >= kFewestModules);
  std::size_t calls = 0;
  std::size_t golden_calls = 0;
  std::size_t same = 0;
  for (std::uint32_t api = 0; api < rank.target.apis.size(); ++api) {
    const std::string call = call_of(rank.target, api);
    if (call.empty()) continue;
    ++calls;
    const std::uint32_t partner = rank.alignment->golden_of[api];
    if (partner != kNone && call_of(rank.golden, partner) == call) ++same;
  }
  for (std::uint32_t api = 0; api < rank.golden.apis.size(); ++api)
    golden_calls += call_of(rank.golden, api).empty() ? 0 : 1;
  const std::size_t fewest_calls = std::min(calls, golden_calls);
  const bool common_modules = fewest >= kFewestModules &&
                              static_cast<double>(common) >= kMostCommonModules * static_cast<double>(fewest);
  const double most = by_modules && !common_modules ? kMostCommonCalls : kMostCommonCallsAlone;
  if (fewest_calls == 0) return by_modules && !common_modules;
  if (!rank.target_joins && !rank.golden_joins && take_other_parameters(rank)) return true;
  // One that takes many calls for each of the other's is written otherwise, as a loop for a fused kernel.
  if (fewest_calls > 0 && std::max(calls, golden_calls) >= kCallsForOne * fewest_calls) return true;
  return ((by_modules && !common_modules) || fewest_calls >= kFewestCalls) &&
         static_cast<double>(same) < most * static_cast<double>(fewest_calls);
}

std::vector<std::uint32_t> partners_by_content(const measuring::MeasuredRank& rank) {
  const Implementation ours(rank.target, nullptr, rank.target_construct);
  const Implementation theirs(rank.golden, nullptr, rank.golden_construct);
  const Allowance allowance = allowance_of(std::max(ours.coarsest(), theirs.coarsest()), 0);
  const ParameterMap parameters = map_parameters(ours.flow, theirs.flow, allowance.norm);
  return partners_of(ours, theirs, parameters, meet(ours.flow, theirs.flow, parameters, allowance));
}

bool are_two_layouts(const measuring::MeasuredRank& rank) {
  const auto ranks = [](const std::shared_ptr<Joins>& joins) { return joins ? joins->ranks.size() : 1; };
  return ranks(rank.target_joins) != ranks(rank.golden_joins);
}

RankDiagnosis diagnose_code_bases(const measuring::MeasuredRank& rank,
                                  const std::vector<std::string>& framework_frames, History& history) {
  return Comparison(rank, framework_frames, history).run();
}

RankDiagnosis unless_it_computes_the_same(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                                          const std::vector<std::string>& framework_frames, History& history,
                                          const History& before) {
  const Finding& first = by_name.findings.front();
  if (first.kind != Kind::parameter || first.concerned < kFewestOtherParameters || before.steps > 0)
    return std::move(by_name);
  History behind = before;
  Comparison comparison(rank, framework_frames, behind);
  RankDiagnosis by_content = comparison.run();
  if (!comparison.is_exact() || !comparison.agrees_to_the_end() || !by_content.findings.empty())
    return std::move(by_name);
  by_content.notes.front() = fmt::format(
      "{} parameters differ by name, the first {}, and what is computed from them agrees: merged or folded "
      "weights; "
      "what lies between two places where both agree is not compared",
      human_count(first.concerned), first.entry);
  history = std::move(behind);
  return by_content;
}

RankDiagnosis diagnose_layouts(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                               const std::vector<std::string>& framework_frames, History& history,
                               const History& before) {
  History behind = before;
  Comparison comparison(rank, framework_frames, behind);
  RankDiagnosis by_content = comparison.run();
  if (by_name.evidence > 0 && comparison.confirms(by_content, by_name.findings.front()))
    return std::move(by_name);
  history = std::move(behind);
  return by_content;
}

}  // namespace msprobe::diagnosis
