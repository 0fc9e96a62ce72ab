// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/stretch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "diagnosis/limits.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {
namespace {

using pairing::family_of;
using pairing::kNone;

/// A content with fewer elements may be the same by chance, for example a decision.
constexpr std::uint64_t kFewestElements = 16;
/// The search for near contents looks at this many contents at the beginning of a stretch.
constexpr std::size_t kMostNear = 2000;

/// One implementation, and which of its contents are the same in the other.
class Part {
 public:
  /// `errors`: of the contents that meet; NaN where the error is not known. `group_of`: as in ParameterMap.
  Part(const ContentFlow& flow, std::vector<bool> meets, const std::vector<double>& errors,
       const std::vector<std::uint32_t>& group_of)
      : flow_(flow), group_of_(group_of), meets_(std::move(meets)) {
    for (const Joint& joint : flow.joints()) wholes_.emplace(joint.part, joint.whole);
    find_wrong(errors);
  }

  const ContentFlow& flow() const { return flow_; }
  bool meets(std::uint32_t content) const { return meets_[content]; }
  /// Whether something agrees that follows from the content.
  bool leads_on(std::uint32_t content) const { return leads_[content]; }
  bool is_made(std::uint32_t content) const { return flow_.contents()[content].maker != kNone; }
  std::uint64_t elements(std::uint32_t content) const { return flow_.contents()[content].elements; }
  /// The content itself, and those that it is a part of on other ranks.
  std::vector<const Content*> wholes(std::uint32_t content) const {
    std::vector<const Content*> found{&flow_.contents()[content]};
    const auto [first, last] = wholes_.equal_range(content);
    for (auto each = first; each != last; ++each) found.push_back(&flow_.contents()[each->second]);
    return found;
  }

  /// The only input of a call that some call made; kNone if no input was made, or several were.
  std::uint32_t made_input(std::uint32_t call) const {
    std::uint32_t found = kNone;
    for (const std::uint32_t content : flow_.taken(call)) {
      if (!is_made(content)) continue;
      if (found != kNone) return kNone;
      found = content;
    }
    return found;
  }
  std::vector<std::uint32_t> made_inputs(std::uint32_t call) const {
    std::vector<std::uint32_t> found;
    for (const std::uint32_t content : flow_.taken(call)) {
      if (is_made(content)) found.push_back(content);
    }
    return found;
  }
  std::uint32_t first_output(std::uint32_t call) const {
    const auto given = flow_.given(call);
    return given.empty() ? kNone : given.front();
  }

  /// The calls between contents that agree and this one, in order; and the last such content.
  std::pair<std::vector<std::uint32_t>, std::uint32_t> calls_before(std::uint32_t content) const {
    std::vector<bool> seen(flow_.calls().size());
    std::vector<bool> looked_at(flow_.contents().size());
    std::vector<std::uint32_t> calls{flow_.contents()[content].maker};
    const std::uint32_t last = calls.front();
    seen[last] = true;
    std::uint32_t agrees = kNone;
    const auto add = [&](std::uint32_t call) {
      if (!seen[call]) calls.push_back(call);
      seen[call] = true;
    };
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::uint32_t call = calls[i];
      for (const std::uint32_t taken : flow_.taken(call)) {
        const std::uint32_t maker = flow_.contents()[taken].maker;
        if (maker == kNone || maker >= call) continue;
        const bool moved = pairing::only_moves(flow_.operation(maker));
        if (!meets_[taken] || moved) {
          add(maker);
        } else if (group_of_[taken] == kNone && (agrees == kNone || taken > agrees)) {
          agrees = taken;
        }
        // Statistics do not show where elements are.
        if (looked_at[taken]) continue;
        looked_at[taken] = true;
        for (const std::uint32_t other : flow_.takers(taken)) {
          if (other >= last) break;
          const auto given = flow_.given(other);
          if (other != maker && std::find(given.begin(), given.end(), taken) != given.end()) add(other);
        }
      }
    }
    std::sort(calls.begin(), calls.end());
    return {calls, agrees};
  }

  /// Whether the output of the last call that takes a parameter agrees.
  bool agrees_behind_parameters() const {
    const auto& contents = flow_.contents();
    for (auto call = static_cast<std::uint32_t>(flow_.calls().size()); call-- > 0;) {
      const auto taken = flow_.taken(call);
      const bool of_parameter = std::any_of(taken.begin(), taken.end(), [&](std::uint32_t each) {
        return contents[each].maker == kNone && flow_.is_parameter(each);
      });
      const std::uint32_t out = first_output(call);
      if (of_parameter && out != kNone) return meets_[out];
    }
    return false;
  }
  /// The last content if it is a single number, as a loss is; kNone if the run does not end with one.
  std::uint32_t last_number() const {
    for (auto call = static_cast<std::uint32_t>(flow_.calls().size()); call-- > 0;) {
      const std::uint32_t out = first_output(call);
      if (out != kNone) return elements(out) == 1 ? out : kNone;
    }
    return kNone;
  }

  /// The first wrong content from which most of the later wrong ones follow; kNone if no content is wrong.
  std::uint32_t common_origin() const {
    constexpr std::size_t kMostLooks = 64;
    std::vector<std::uint32_t> wrong;
    for (std::uint32_t i = 0; i < wrong_.size(); ++i) {
      if (wrong_[i]) wrong.push_back(i);
    }
    for (std::size_t i = 0; i < std::min(wrong.size(), kMostLooks); ++i) {
      std::vector<bool> follows(flow_.contents().size());
      follows[wrong[i]] = true;
      for (std::uint32_t call = 0; call < flow_.calls().size(); ++call) {
        const auto taken = flow_.taken(call);
        if (std::none_of(taken.begin(), taken.end(), [&](std::uint32_t each) { return follows[each]; }))
          continue;
        for (const std::uint32_t given : flow_.given(call)) follows[given] = true;
      }
      const auto behind = std::count_if(wrong.begin() + static_cast<std::ptrdiff_t>(i), wrong.end(),
                                        [&](std::uint32_t each) { return follows[each]; });
      if (static_cast<double>(behind) >= kHalf * static_cast<double>(wrong.size() - i)) return wrong[i];
    }
    return wrong.empty() ? kNone : wrong.front();
  }

 private:
  void find_wrong(const std::vector<double>& errors) {
    const auto& contents = flow_.contents();
    const auto calls = static_cast<std::uint32_t>(flow_.calls().size());
    leads_.assign(contents.size(), false);
    std::vector<std::uint32_t> reach(contents.size());  // the last call that follows from it
    for (std::uint32_t i = 0; i < contents.size(); ++i) {
      // In half types, normalised contents are near enough to meet although an input has an error.
      const bool clearly = !(errors[i] > std::max(contents[i].u, kFar * measuring::kSingleRoundoff));
      leads_[i] = meets_[i] && clearly && contents[i].u > 0 && contents[i].elements >= kFewestElements;
      reach[i] = contents[i].maker == kNone ? 0 : contents[i].maker;
    }
    for (std::uint32_t call = calls; call-- > 0;) {
      bool right = false;
      std::uint32_t furthest = call;
      for (const std::uint32_t given : flow_.given(call)) {
        if (contents[given].maker != call) continue;
        right = right || leads_[given];
        furthest = std::max(furthest, reach[given]);
      }
      for (const std::uint32_t taken : flow_.taken(call)) {
        if (contents[taken].maker != kNone && contents[taken].maker >= call) continue;
        leads_[taken] = leads_[taken] || right;
        reach[taken] = std::max(reach[taken], furthest);
      }
    }
    wrong_.assign(contents.size(), false);
    std::map<std::uint32_t, std::size_t> ends;  // how many lead there
    for (std::uint32_t i = 0; i < contents.size(); ++i) {
      wrong_[i] = contents[i].maker != kNone && !meets_[i] && !leads_[i];
      if (wrong_[i] && reach[i] > contents[i].maker) ++ends[reach[i]];
    }
    // An error lasts to an end of the run. Contents that lead to another end only seem wrong: the calls that
    // take them are not recorded.
    const auto end = std::max_element(ends.begin(), ends.end(),
                                      [](const auto& a, const auto& b) { return a.second <= b.second; });
    if (end == ends.end()) return;
    for (std::uint32_t i = 0; i < contents.size(); ++i) wrong_[i] = wrong_[i] && reach[i] == end->first;
  }

  const ContentFlow& flow_;
  const std::vector<std::uint32_t>& group_of_;
  std::vector<bool> meets_;
  std::vector<bool> leads_;
  std::vector<bool> wrong_;  // contents that differ, from which nothing follows that agrees, and which reach
  std::multimap<std::uint32_t, std::uint32_t> wholes_;  // by part
};

/// Contents of both sides that should be the same and are not.
struct Ends {
  std::uint32_t ours = kNone;
  std::uint32_t theirs = kNone;
};

class Search {
 public:
  Search(const ContentFlow& target, const ContentFlow& golden, const ParameterMap& parameters,
         const Meetings& meetings)
      : parameters_(parameters),
        ours_(target, meets(meetings), meetings.error, parameters.group_of),
        theirs_(golden, meetings.golden_meets, meetings.golden_error, parameters.golden_group_of) {}

  std::optional<Stretch> run() {
    Ends ends = by_parameters();
    if (ends.ours == kNone) {
      // The loss of a part of the batch is another number.
      const bool whole = ours_.flow().joints().empty() && theirs_.flow().joints().empty();
      const Ends last = whole ? Ends{ours_.last_number(), theirs_.last_number()} : Ends{};
      const bool agree = ours_.agrees_behind_parameters() || theirs_.agrees_behind_parameters();
      if (!agree) {
        ends = {ours_.common_origin(), theirs_.common_origin()};
        // A content of another size is another tensor.
        const bool known =
            ends.ours != kNone && ends.theirs != kNone && !std::isnan(error(ends.ours, ends.theirs));
        if (!known) ends.theirs = kNone;
      } else if (losses_differ(last.ours, last.theirs)) {
        ends = last;
      }
    }
    if (ends.ours == kNone) return std::nullopt;
    // A stretch that ends sooner may contain another one.
    for (int looks = 0; looks < kMostLooks; ++looks) {
      const Ends sooner = within(ends);
      if (sooner.ours == kNone) break;
      ends = sooner;
    }
    Stretch found;
    std::tie(found.calls, found.agrees) = ours_.calls_before(ends.ours);
    keep_recorded(ours_, found.calls);
    found.differs = ends.ours;
    if (ends.theirs != kNone) {
      found.golden_calls = theirs_.calls_before(ends.theirs).first;
      keep_recorded(theirs_, found.golden_calls);
      found.golden_differs = ends.theirs;
      found.error = error(ends.ours, ends.theirs);
    }
    return found;
  }

 private:
  static constexpr int kMostLooks = 16;

  static std::vector<bool> meets(const Meetings& meetings) {
    std::vector<bool> found(meetings.golden_of.size());
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = meetings.golden_of[i] != kNone;
    return found;
  }

  /// The error between two contents, the smaller one if ranks hold parts of them; NaN where their numbers of
  /// elements differ.
  double error(std::uint32_t ours, std::uint32_t theirs) const {
    double least = NAN;
    for (const Content* content : ours_.wholes(ours)) {
      for (const Content* partner : theirs_.wholes(theirs))
        least = std::fmin(least, error_between(*content, *partner));
    }
    return least;
  }

  /// Whether both contents are wrong, provided that they should be the same. A normalised content may agree
  /// again later, so that it counts as wrong if its partner is near.
  bool both_wrong(std::uint32_t ours, std::uint32_t theirs) const {
    if (ours == kNone || theirs == kNone || ours_.meets(ours) || theirs_.meets(theirs) ||
        !ours_.is_made(ours) || !theirs_.is_made(theirs))
      return false;
    const double apart = error(ours, theirs);
    return !std::isnan(apart) && (!ours_.leads_on(ours) || apart <= kNearby);
  }

  /// Whether two losses differ by more than rounding to half types explains.
  bool losses_differ(std::uint32_t ours, std::uint32_t theirs) const {
    if (!both_wrong(ours, theirs)) return false;
    const double u = std::max(ours_.flow().coarsest(), theirs_.flow().coarsest());
    return !is_half(u) || error(ours, theirs) > kFew * u;
  }

  /// The ends at two calls that do the same. Their inputs should be the same; else their outputs should, if
  /// both calls take the same whole parameter.
  Ends of_same(std::uint32_t call, std::uint32_t golden_call, bool alike) const {
    const std::uint32_t in = ours_.made_input(call);
    const std::uint32_t golden_in = theirs_.made_input(golden_call);
    if (both_wrong(in, golden_in)) return {in, golden_in};
    const std::uint32_t out = ours_.first_output(call);
    const std::uint32_t golden_out = theirs_.first_output(golden_call);
    return alike && both_wrong(out, golden_out) ? Ends{out, golden_out} : Ends{};
  }

  bool is_sooner(const Ends& a, const Ends& b) const {
    if (a.ours == kNone || b.ours == kNone) return b.ours == kNone && a.ours != kNone;
    const auto& contents = ours_.flow().contents();
    return std::make_pair(contents[a.ours].maker, a.ours) < std::make_pair(contents[b.ours].maker, b.ours);
  }

  /// The first ends at calls of both sides that take the same parameter.
  Ends by_parameters() const {
    std::vector<std::vector<std::uint32_t>> ours(parameters_.groups.size());
    for (std::uint32_t i = 0; i < parameters_.group_of.size(); ++i) {
      if (parameters_.group_of[i] != kNone) ours[parameters_.group_of[i]].push_back(i);
    }
    Ends best;
    for (std::size_t group = 0; group < ours.size(); ++group) {
      const bool alike = parameters_.groups[group].ours.size() == parameters_.groups[group].theirs.size();
      const auto golden_calls = theirs_.flow().takers(parameters_.groups[group].theirs.front());
      for (const std::uint32_t each : ours[group]) {
        const auto calls = ours_.flow().takers(each);
        for (std::size_t k = 0; k < std::min(calls.size(), golden_calls.size()); ++k) {
          const Ends found = of_same(calls[k], golden_calls[k], alike);
          if (is_sooner(found, best)) best = found;
        }
      }
    }
    return best;
  }

  /// Ends that come before these, inside the stretch that leads to them.
  Ends within(const Ends& ends) const {
    if (ends.theirs == kNone) return {};
    const auto calls = ours_.calls_before(ends.ours).first;
    const auto golden_calls = theirs_.calls_before(ends.theirs).first;
    if (calls.size() == 1) return {};
    Ends best;
    std::map<std::string_view, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> families;
    for (const std::uint32_t call : calls)
      families[family_of(ours_.flow().operation(call))].first.push_back(call);
    for (const std::uint32_t call : golden_calls)
      families[family_of(theirs_.flow().operation(call))].second.push_back(call);
    families.erase("");
    for (const auto& [family, both] : families) {
      if (both.first.size() != both.second.size()) continue;
      for (std::size_t k = 0; k < both.first.size(); ++k) {
        const Ends found = of_same_in_stretch(both.first[k], both.second[k]);
        if (found.ours != ends.ours && is_sooner(found, best)) best = found;
      }
    }
    std::vector<std::uint32_t> contents = wrong_of(ours_, calls);
    std::vector<std::uint32_t> golden_contents = wrong_of(theirs_, golden_calls);
    for (const NearPair& near : near_pairs(ours_.flow(), contents, theirs_.flow(), golden_contents)) {
      const Ends found{near.target, near.golden};
      if (near.target != ends.ours && is_sooner(found, best)) best = found;
    }
    return is_sooner(best, ends) ? best : Ends{};
  }

  /// As of_same(), for calls that take several contents.
  Ends of_same_in_stretch(std::uint32_t call, std::uint32_t golden_call) const {
    const auto in = ours_.made_inputs(call);
    const auto golden_in = theirs_.made_inputs(golden_call);
    if (in.size() != golden_in.size()) return {};
    bool agree = true;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (both_wrong(in[i], golden_in[i])) return {in[i], golden_in[i]};
      agree = agree && ours_.meets(in[i]) && theirs_.meets(golden_in[i]);
    }
    const std::uint32_t out = ours_.first_output(call);
    const std::uint32_t golden_out = theirs_.first_output(golden_call);
    return agree && both_wrong(out, golden_out) ? Ends{out, golden_out} : Ends{};
  }

  static void keep_recorded(const Part& part, std::vector<std::uint32_t>& calls) {
    std::erase_if(calls, [&](std::uint32_t call) { return !part.flow().is_recorded(call); });
  }

  static std::vector<std::uint32_t> wrong_of(const Part& part, const std::vector<std::uint32_t>& calls) {
    std::vector<std::uint32_t> found;
    for (const std::uint32_t call : calls) {
      for (const std::uint32_t given : part.flow().given(call)) {
        if (!part.meets(given) && part.flow().contents()[given].maker == call && found.size() < kMostNear)
          found.push_back(given);
      }
    }
    return found;
  }

  const ParameterMap& parameters_;
  Part ours_;
  Part theirs_;
};

}  // namespace

std::optional<Stretch> find_stretch(const ContentFlow& target, const ContentFlow& golden,
                                    const ParameterMap& parameters, const Meetings& meetings) {
  return Search(target, golden, parameters, meetings).run();
}

}  // namespace msprobe::diagnosis
