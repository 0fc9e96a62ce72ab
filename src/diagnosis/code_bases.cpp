// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/code_bases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/meeting_points.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Side;
using dump::State;

/// The modules that have parameters of their own.
std::set<std::string> parameter_paths(const Side& side) {
  std::set<std::string> found;
  for (const dump::Item& item : side.items) {
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

/// One implementation: what its forward puts out, and how it is called.
struct Implementation {
  Implementation(const Side& of, const std::shared_ptr<const dump::ConstructBeside>& beside)
      : side(of), construct(beside ? &beside->table() : nullptr) {
    end = behind_backward(side);
    outputs = distinct_outputs(side, [&](std::uint32_t api) {
      return api < end && (construct == nullptr ||
                           !dump::is_of_optimizer(construct->parent(side.text(side.apis[api].name))));
    });
  }

  std::uint32_t api(std::size_t place) const { return side.items[outputs[place]].api; }
  std::string name(std::size_t place) const { return std::string(side.text(side.apis[api(place)].name)); }
  std::string module(std::size_t place) const {
    const std::string entry = name(place);
    const bool own = !module_path(entry).empty();
    return std::string(module_path(own || construct == nullptr ? entry : construct->parent(entry)));
  }
  /// Of the gradients of all recorded parameters, each content once: how many elements, and their norm.
  std::pair<std::uint64_t, double> gradients() const {
    std::set<std::uint64_t> known;
    std::uint64_t elements = 0;
    double norm = 0;
    for (const dump::Item& item : side.items) {
      const std::uint64_t key = item.state == State::parameters_grad ? content_key(side, item) : 0;
      if (key == 0 || !known.insert(key).second) continue;
      elements += elements_of(side.text(item.shape));
      norm = std::hypot(norm, number_of(side, item, dump::kNorm));
    }
    return {elements, norm};
  }
  /// `Tensor.add, Functional.gelu and 3 more`: what is put out at places from `first` to `last`, both
  /// included.
  std::string operations(std::size_t first, std::size_t last) const {
    constexpr std::size_t kShown = 6;
    std::string text;
    std::set<std::uint32_t> calls;
    for (std::size_t place = first; place <= last && place < outputs.size(); ++place) {
      if (!calls.insert(api(place)).second || calls.size() > kShown) continue;
      const auto parsed = dump::parse_entry_name(side.text(side.apis[api(place)].name));
      text += (text.empty() ? "" : ", ") + std::string(parsed->base);
    }
    if (calls.size() > kShown) text += fmt::format(" and {} more", calls.size() - kShown);
    return text.empty() ? "nothing" : text;
  }

  /// Places that what is wrong may have made.
  struct Affected {
    std::size_t first = 0;
    std::size_t through = 0;  // most of those behind it follow from it
  };

  /// Places from which no way leads to one of `equal`, and one leads as far as from any such place: what is
  /// wrong stays wrong to the end, others end where it is not recorded who takes them. Nothing if there are
  /// none.
  std::optional<Affected> affected(const std::vector<std::size_t>& equal) const {
    const std::vector<FlowEdge> edges = forward_edges();
    std::vector<bool> right(side.apis.size());
    for (const std::size_t place : equal) right[api(place)] = true;
    std::vector<std::uint32_t> reach(side.apis.size());
    for (std::uint32_t i = 0; i < reach.size(); ++i) reach[i] = i;
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      right[edge->producer] = right[edge->producer] || right[edge->consumer];
      reach[edge->producer] = std::max(reach[edge->producer], reach[edge->consumer]);
    }
    std::uint32_t furthest = 0;
    for (std::size_t place = 0; place < outputs.size(); ++place) {
      if (!right[api(place)] && reach[api(place)] > api(place))
        furthest = std::max(furthest, reach[api(place)]);
    }
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < outputs.size(); ++place) {
      if (furthest > 0 && !right[api(place)] && reach[api(place)] == furthest) places.push_back(place);
    }
    if (places.empty()) return std::nullopt;
    // Tables that each layer makes anew follow from nothing.
    constexpr double kMost = 0.7;
    constexpr std::size_t kMostLooks = 64;
    for (std::size_t i = 0; i < std::min(places.size(), kMostLooks); ++i) {
      std::vector<bool> follows(side.apis.size());
      follows[api(places[i])] = true;
      for (const FlowEdge& edge : edges)
        follows[edge.consumer] = follows[edge.consumer] || follows[edge.producer];
      const auto behind = std::count_if(places.begin() + static_cast<std::ptrdiff_t>(i), places.end(),
                                        [&](std::size_t place) { return follows[api(place)]; });
      if (static_cast<double>(behind) >= kMost * static_cast<double>(places.size() - i))
        return Affected{places.front(), places[i]};
    }
    return Affected{places.front(), places.front()};
  }

  const Side& side;
  const dump::ConstructTable* construct;  // may be null
  std::vector<std::uint32_t> outputs;     // items
  std::uint32_t end = 0;                  // the first entry that no backward follows

 private:
  /// By consumer.
  std::vector<FlowEdge> forward_edges() const {
    std::vector<FlowEdge> edges = flow_edges(side, modules());
    std::erase_if(edges, [&](const FlowEdge& edge) {
      const auto consumer = dump::parse_entry_name(side.text(side.apis[edge.consumer].name));
      return edge.consumer >= end || !consumer || consumer->direction != Direction::forward;
    });
    return edges;
  }

  /// Where operations are recorded, modules hand on what these put out.
  std::vector<bool> modules() const {
    std::vector<bool> found(side.apis.size());
    bool operations = false;
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
      const auto name = dump::parse_entry_name(side.text(side.apis[i].name));
      found[i] = name && name->is_module;
      operations = operations || (name && !name->is_module);
    }
    if (!operations) found.assign(found.size(), false);
    return found;
  }
};

/// Two implementations against each other, in one step of one rank.
class Comparison {
 public:
  Comparison(const measuring::MeasuredRank& rank, const std::vector<std::string>& frames, History& history)
      : rank_(rank),
        frames_(frames),
        history_(history),
        ours_(rank.target, rank.target_construct),
        theirs_(rank.golden, rank.golden_construct),
        drift_(history.steps == 0 ? 0 : kDriftOfStep),
        meetings_(meeting_points(ours_.side, ours_.outputs, theirs_.side, theirs_.outputs, drift_)) {}

  RankDiagnosis run() {
    out_.step = rank_.step;
    out_.rank = rank_.rank;
    out_.number = rank_.number;
    out_.tensors = rank_.mode == measuring::Mode::tensor;
    out_.threshold = out_.tensors ? kThresholdTensors : kThresholdStatistics;
    out_.looked_at = static_cast<std::uint32_t>(ours_.side.apis.size());
    for (const Meeting& each : meetings_) {
      if (each.equal) last_ = &each;
    }
    const bool to_the_end = agrees_to_the_end();
    fill_rows();
    std::string gradients;
    if (to_the_end) {
      gradients = compare_gradients();
    } else if (!ours_.outputs.empty() && !theirs_.outputs.empty()) {
      find_stretch();
    }
    out_.notes.push_back(fmt::format(
        "two code bases: modules and operations have too little in common to be compared by name; {}{}",
        agreement(), gradients));
    for (const Origin origin : out_.origin) ++out_.counts[static_cast<std::size_t>(origin)];
    out_.evidence = out_.findings.size();
    history_.evidence = history_.evidence || out_.evidence > 0;
    ++history_.steps;
    return std::move(out_);
  }

 private:
  /// A loss alone may be equal by chance, or to the rounding of half types.
  bool agrees_to_the_end() const {
    constexpr std::size_t kLastPlaces = 8;
    if (last_ == nullptr ||
        (last_->target + 1 != ours_.outputs.size() && last_->golden + 1 != theirs_.outputs.size()))
      return false;
    return std::any_of(meetings_.begin(), meetings_.end(), [&](const Meeting& each) {
      return each.equal && &each != last_ && each.target + kLastPlaces >= ours_.outputs.size();
    });
  }

  /// Where both agree; what is near behind the last such place follows from what went wrong.
  void fill_rows() {
    out_.golden_item.resize(ours_.side.items.size(), kNone);
    out_.error.resize(ours_.side.items.size(), NAN);
    out_.explained.resize(ours_.side.items.size(), NAN);
    out_.origin.resize(ours_.side.items.size(), Origin::not_compared);
    for (const Meeting& each : meetings_) {
      const bool behind = last_ == nullptr || each.target > last_->target;
      if (!each.equal && !behind) continue;
      const std::uint32_t item = ours_.outputs[each.target];
      out_.origin[item] = !each.equal       ? Origin::propagated
                          : each.error == 0 ? Origin::equal
                                            : Origin::rounding;
      out_.golden_item[item] = theirs_.outputs[each.golden];
      out_.error[item] = static_cast<float>(each.error);
      ++out_.measured;
      out_.agreeing += each.equal ? 1 : 0;
      out_.rounded += each.equal && each.error > 0 ? 1 : 0;
    }
  }

  /// Up to the last place where both agree.
  std::string agreement() const {
    const Meeting* first = nullptr;
    std::uint64_t places = 0;
    for (const Meeting& each : meetings_) {
      if (!each.equal || last_ == nullptr || each.target > last_->target) continue;
      first = first == nullptr ? &each : first;
      ++places;
    }
    if (first == nullptr) return "the implementations agree nowhere";
    return fmt::format("the implementations agree at {} {}, from {} to {}", human_count(places),
                       places == 1 ? "place" : "places", ours_.name(first->target),
                       ours_.name(last_->target));
  }

  void find_stretch() {
    std::vector<std::size_t> equal;
    std::vector<std::size_t> golden_equal;
    for (const Meeting& each : meetings_) {
      if (!each.equal) continue;
      equal.push_back(each.target);
      golden_equal.push_back(each.golden);
    }
    // Something that agrees may be computed beside what went wrong before.
    const auto affected = ours_.affected(equal);
    const auto golden_affected = theirs_.affected(golden_equal);
    if (affected) last_ = nullptr;
    const Meeting* near = nullptr;
    for (const Meeting& each : meetings_) {
      if (each.equal && affected && each.target < affected->first) last_ = &each;
      const bool behind =
          affected ? each.target >= affected->first : last_ == nullptr || each.target > last_->target;
      if (!each.equal && behind && near == nullptr) near = &each;
    }
    const std::size_t from = last_ == nullptr ? 0 : last_->target + 1;
    const std::size_t golden_from = last_ == nullptr ? 0 : last_->golden + 1;
    const std::size_t through = affected ? affected->through : 0;
    const std::size_t to = near != nullptr ? std::max(through, near->target)
                           : affected      ? through
                                           : ours_.outputs.size() - 1;
    const std::size_t golden_to =
        golden_affected && golden_affected->through >= golden_from ? golden_affected->through
        : near != nullptr && near->golden >= golden_from           ? near->golden
                                                                   : theirs_.outputs.size() - 1;
    Finding found;
    const std::string module = theirs_.module(golden_from);
    found.text = fmt::format(
        "{}{}, and not behind: this run computes {} up to {}, golden{} {} up to {}", agreement(),
        last_ == nullptr ? "" : fmt::format(" (golden {})", theirs_.name(last_->golden)),
        ours_.operations(from, to), ours_.name(to), module.empty() ? "" : fmt::format(" in {}", module),
        theirs_.operations(golden_from, golden_to), theirs_.name(golden_to));
    if (near != nullptr)
      found.text += fmt::format("; error {} at {} (golden {})", error_text(near->error),
                                ours_.name(near->target), theirs_.name(near->golden));
    keep(std::move(found), from, golden_from);
  }

  /// By the norm of all together; how they agree, for a note.
  std::string compare_gradients() {
    const auto [elements, norm] = ours_.gradients();
    const auto [golden_elements, golden_norm] = theirs_.gradients();
    // Of parameters that are no module's, none is recorded.
    if (elements == 0 || elements != golden_elements) return "; gradients are not compared";
    if (std::abs(norm - golden_norm) <= (kMostOfGradients + drift_) * golden_norm)
      return ", and so do the gradients of all parameters together";
    Finding found;
    found.text =
        fmt::format("{}, and the gradients of all parameters together do not: norm {:.6g}, golden {:.6g}",
                    agreement(), norm, golden_norm);
    found.next = "compare what takes part in the backward on both sides: detached tensors, custom gradients";
    keep(std::move(found), last_->target, last_->golden);
    return {};
  }

  void keep(Finding found, std::size_t place, std::size_t golden_place) {
    found.kind = Kind::stretch;
    found.rule = Rule::source;
    found.confidence = Confidence::likely;
    found.excess = kInfinite;
    found.target_api = ours_.api(place);
    found.item = ours_.outputs[place];
    found.order = 2 * std::uint64_t{found.target_api} + 1;
    found.entry = ours_.name(place);
    found.golden_entry = theirs_.name(golden_place);
    found.module = ours_.module(place);
    found.step = out_.step;
    found.rank = out_.rank;
    found.downstream = history_.evidence;
    if (found.next.empty()) found.next = advice(found, out_.tensors);
    if (ours_.side.stacks) {
      if (const auto* stack = ours_.side.stacks->find(found.entry))
        found.where = dump::user_frame(*stack, frames_);
    }
    out_.origin[found.item] = Origin::introduced;
    out_.findings.push_back(std::move(found));
  }

  const measuring::MeasuredRank& rank_;
  const std::vector<std::string>& frames_;
  History& history_;
  Implementation ours_;
  Implementation theirs_;
  double drift_;
  std::vector<Meeting> meetings_;
  const Meeting* last_ = nullptr;  // where both agree, ahead of what is wrong
  RankDiagnosis out_;
};

}  // namespace

bool are_two_code_bases(const measuring::MeasuredRank& rank) {
  const std::set<std::string> ours = parameter_paths(rank.target);
  const std::set<std::string> theirs = parameter_paths(rank.golden);
  const std::size_t fewest = std::min(ours.size(), theirs.size());
  if (of_other_operations(rank.target, rank.golden)) return false;
  const auto common =
      std::count_if(ours.begin(), ours.end(), [&](const std::string& path) { return theirs.contains(path); });
  const bool by_modules = fewest >= kFewestModules;
  if (by_modules && static_cast<double>(common) >= kMostCommonModules * static_cast<double>(fewest))
    return false;
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
  const double most = by_modules ? kMostCommonCalls : kMostCommonCallsAlone;
  return (by_modules || fewest_calls >= kFewestCalls) &&
         static_cast<double>(same) < most * static_cast<double>(fewest_calls);
}

RankDiagnosis diagnose_code_bases(const measuring::MeasuredRank& rank,
                                  const std::vector<std::string>& framework_frames, History& history) {
  return Comparison(rank, framework_frames, history).run();
}

}  // namespace msprobe::diagnosis
