// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/code_bases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/content_partners.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/gradient_meetings.hpp"
#include "diagnosis/implementation.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/meeting_points.hpp"
#include "diagnosis/other_code.hpp"
#include "diagnosis/parameter_gradients.hpp"
#include "diagnosis/parameter_map.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/stretch.hpp"
#include "dump/side.hpp"
#include "dump/stack_json.hpp"
#include "measuring/measures.hpp"
#include "measuring/rank_coverage.hpp"
#include "pairing/places.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Side;
using dump::State;
using pairing::kNone;

bool computes_in_half_types(const Side& side) {
  return std::ranges::any_of(side.items, [&](const dump::Item& item) {
    return item.is_tensor && is_half(measuring::unit_roundoff(side.text(item.dtype))) &&
           side.parsed_name(item.api).direction == dump::Direction::forward;
  });
}

/// Compares two implementations in one step of one rank.
class Comparison {
 public:
  Comparison(const measuring::MeasuredRank& rank, const std::vector<std::string>& frames, History& history)
      : rank_(rank),
        frames_(frames),
        history_(history),
        ours_(rank.target, rank.target_joins.get(), rank.target_construct),
        theirs_(rank.golden, rank.golden_joins.get(), rank.golden_construct),
        drift_(history.steps == 0 ? 0 : kTrainedRounding),
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
            ? "two parallel layouts: tensors that ranks hold in parts are compared as a whole, and nothing "
              "by name"
            : "two code bases: they have too little in common to be compared by name; calls between two "
              "places where both agree are not compared");
    note_parameters();
    note_drift();
    for (const Origin origin : out_.origin) ++out_.counts[static_cast<std::size_t>(origin)];
    out_.evidence = static_cast<std::uint64_t>(std::count_if(
        out_.findings.begin(), out_.findings.end(), [](const Finding& each) { return each.is_evidence(); }));
    history_.evidence = history_.evidence || out_.evidence > 0;
    ++history_.steps;
    return std::move(out_);
  }

  /// Whether the finding by names is in the stretch: its entry, its module, or an entry with the same output.
  /// A parameter that the other side has nowhere also confirms it.
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
        (stretch.module == by_name.module || stretch.module == pairing::module_path(by_name.entry)))
      return true;
    return stretch.target_api != kNone && by_name.target_api != kNone &&
           put_out_the_same(stretch.target_api, by_name.target_api);
  }

  /// Whether the last output of one side has a partner and so has another one of the last outputs. A loss
  /// alone may be equal by chance, or to the rounding of half types.
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
  bool put_out_the_same(std::uint32_t one, std::uint32_t other) const {
    const ContentKeys keys(ours_.side, false);
    return has_one_of(keys, other, State::output, contents_in(keys, one, State::output));
  }

  bool meets(std::uint32_t content) const { return meetings_.golden_of[content] != kNone; }

  /// Fills the rows of outputs that are the same. Nothing is known about the other rows.
  void fill_rows() {
    out_.golden_item = partners_of(ours_, theirs_, parameters_, meetings_);
    out_.coverage = measuring::coverage_of(rank_, out_.golden_item);
    out_.error.resize(ours_.side.items.size(), NAN);
    out_.explained.resize(ours_.side.items.size(), NAN);
    out_.origin.resize(ours_.side.items.size(), Origin::not_compared);
    for (std::uint32_t item = 0; item < out_.origin.size(); ++item) {
      const std::uint32_t content = ours_.flow.content_of(item);
      if (content == kNone || !meets(content)) continue;
      const double error = meetings_.error[content];
      out_.origin[item] = error == 0 ? Origin::equal : Origin::rounding;
      out_.error[item] = static_cast<float>(error);
    }
    for (const std::uint32_t content : ours_.made()) {
      if (meets(content))
        out_.meeting_points.push_back(
            {ours_.name(content), theirs_.name(meetings_.golden_of[content]), meetings_.error[content]});
    }
  }

  /// Describes where both implementations agree, up to the content `last`, or everywhere if it is kNone.
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
                     ? "none of its inputs agrees"
                     : fmt::format("both agree up to {} (golden {})", ours_.name(stretch.agrees),
                                   theirs_.name(golden_agrees));
    found.text += fmt::format("; from there this run computes {}", ours_.operations(stretch.calls));
    found.text +=
        stretch.golden_calls.empty()
            ? ", and its partner in golden is not known"
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

  /// Reports the first NaN of this run. Nothing is known about the entries after it.
  void keep_nan() {
    const std::uint32_t api = ours_.flow.first_nan();
    const std::string entry(ours_.side.text(ours_.side.apis[api].name));
    Finding found;
    found.text = "its output has NaN, which golden has nowhere; later calls are not compared";
    found.operations = {entry};
    found.target_api = api;
    for (const std::uint32_t i : ours_.side.apis[api].items()) {
      if (ours_.side.items[i].state == State::output) found.item = i;
    }
    keep_at(std::move(found), kNone);
  }

  /// The end of a sentence about a parameter that the calls of a stretch take and golden has nowhere.
  std::string lone_parameter_of(const Stretch& stretch) const {
    for (const std::uint32_t call : stretch.calls) {
      for (const std::uint32_t taken : ours_.flow.taken(call)) {
        const auto& alone = parameters_.ours_alone;
        if (std::find(alone.begin(), alone.end(), taken) != alone.end())
          return fmt::format("; golden has no parameter like its input {}",
                             parameter_name(ours_.flow, taken));
      }
    }
    return {};
  }

  /// The end of a sentence about whole numbers that come from outside, such as token ids, and that the other
  /// side does not get.
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

  /// Adds a note about parameters that the other side has in another form, or that are wrong.
  void note_parameters() {
    const auto& ours = parameters_.ours_alone;
    const auto& theirs = parameters_.theirs_alone;
    // After an update, rounding affects all parameters.
    if (ours.empty() || theirs.empty() || parameters_.groups.empty() || history_.steps > 0) return;
    out_.notes.push_back(
        fmt::format("by content, {} of this run's parameters and {} of golden's have no partner, as {} and "
                    "{} (--map-parameters lists them)",
                    human_count(ours.size()), human_count(theirs.size()),
                    parameter_name(ours_.flow, ours.front()), parameter_name(theirs_.flow, theirs.front())));
  }

  /// Reports a parameter whose gradient differs, which is evidence; returns whether it did.
  bool keep_other_gradient(const ParameterGradients& gradients) {
    if (gradients.other == kNone) return false;
    Finding found;
    found.text = fmt::format(
        "the forward agrees; its parameter {} (golden {}) {}", parameter_name(ours_.flow, gradients.other),
        parameter_name(theirs_.flow,
                       parameters_.groups[parameters_.group_of[gradients.other]].theirs.front()),
        gradients.said);
    found.next = "compare which parameters are trained, tied or detached on both sides";
    const std::uint32_t call = ours_.first_of({}, gradients.other);
    if (call == kNone) return false;
    found.operations = {ours_.flow.name(call)};
    keep(std::move(found), call, kNone);
    return true;
  }

  /// Adds a note about parameters that differ after an update.
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
    if (largest <= kFar * measuring::kSingleRoundoff) return;
    out_.notes.push_back(fmt::format(
        "{}: parameters differ by up to {}, as {}, after the updates before it: compare the optimizers if "
        "that is more than rounding makes; smaller errors in this step are not seen",
        out_.step.empty() ? "this step" : out_.step, error_text(largest), parameter_name(ours_.flow, where)));
  }

  /// Compares the gradients of each content, and the norm of all parameters' gradients together. Returns how
  /// they agree, for a note.
  std::string compare_gradients() {
    // A rank records the gradient of its part of a call only, and the gradient of the whole is not known.
    if (rank_.target_joins || rank_.golden_joins) {
      const ParameterGradients met = compare_parameter_gradients(ours_, theirs_, parameters_, drift_);
      if (keep_other_gradient(met)) return {};
      if (met.compared == 0) return "; gradients are not compared";
      return fmt::format(
          "; the gradients of {} parameters agree{}", human_count(met.compared),
          met.unknown == 0
              ? ""
              : fmt::format(", those of {} differ between ranks: not reduced, or recorded before they are",
                            human_count(met.unknown)));
    }
    const GradientMeetings met = meet_gradients(ours_.flow, theirs_.flow, parameters_, meetings_, drift_);
    if (!met.calls.empty()) {
      Finding found;
      found.text = fmt::format(
          "the forward agrees; the gradient of {} (golden {}) differs by {}, and those after its calls {} "
          "agree",
          ours_.name(met.differs), theirs_.name(met.golden_differs), error_text(met.error),
          ours_.operations(met.calls));
      found.operations = ours_.names(met.calls);
      found.next = "compare the code of these calls on both sides: detached tensors, custom gradients, hooks";
      keep(std::move(found), met.calls.front(), theirs_.first_of({}, met.golden_differs));
      return {};
    }
    if (keep_other_gradient(compare_parameter_gradients(ours_, theirs_, parameters_, drift_))) return {};
    const auto [elements, norm] = ours_.gradients();
    const auto [golden_elements, golden_norm] = theirs_.gradients();
    // Recorders write no gradients for parameters that belong to no module.
    if (elements == 0 || elements != golden_elements)
      return met.equal == 0 ? "; gradients are not compared"
                            : fmt::format("; the gradients agree at {} of them", human_count(met.equal));
    if (std::abs(norm - golden_norm) <= (kTrainedRounding + drift_) * golden_norm)
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

  /// Reports a finding at a call of each side; kNone: the side has no such call.
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
    found.excess = measuring::kInfinite;
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

  /// Reads golden's stacks, which nothing else needs.
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
  RankDiagnosis out_;
};

}  // namespace

RankDiagnosis diagnose_code_bases(const measuring::MeasuredRank& rank,
                                  const std::vector<std::string>& framework_frames, History& history) {
  return Comparison(rank, framework_frames, history).run();
}

RankDiagnosis unless_it_computes_the_same(const measuring::MeasuredRank& rank, RankDiagnosis&& by_name,
                                          const std::vector<std::string>& framework_frames, History& history,
                                          const History& before) {
  const Finding& first = by_name.findings.front();
  if (first.kind != Kind::parameter || first.concerned < kFewestCases || before.steps > 0)
    return std::move(by_name);
  if (computes_in_half_types(rank.target) || computes_in_half_types(rank.golden)) return std::move(by_name);
  History behind = before;
  Comparison comparison(rank, framework_frames, behind);
  if (!comparison.agrees_to_the_end()) return std::move(by_name);
  RankDiagnosis by_content = comparison.run();
  if (!by_content.findings.empty()) return std::move(by_name);
  by_content.notes.front() = fmt::format(
      "{} parameters differ by name, the first {}, and what is computed from them agrees: merged or folded "
      "weights; calls between two places where both agree are not compared",
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
