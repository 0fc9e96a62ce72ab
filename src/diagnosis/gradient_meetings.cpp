// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/gradient_meetings.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/limits.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;
using measuring::elements_of;
using pairing::kNone;

/// The gradients that arrive at the calls of a side.
class ArrivingGradients {
 public:
  explicit ArrivingGradients(const ContentFlow& flow) : flow_(flow) {
    const Side& side = flow.side();
    for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
      const std::string_view name = side.text(side.apis[api].name);
      const dump::EntryName parsed = side.parsed_name(api);
      if (parsed.direction == Direction::backward) backward_.emplace(name, api);
    }
  }

  /// The item of the gradient of a content, or kNone.
  std::uint32_t of(std::uint32_t content) const {
    const std::uint32_t call = flow_.contents()[content].maker;
    if (call == kNone || !flow_.is_recorded(call)) return kNone;
    const auto given = flow_.given(call);
    const auto place =
        static_cast<std::size_t>(std::find(given.begin(), given.end(), content) - given.begin());
    const std::string forward = flow_.name(call);
    const auto name = dump::parse_entry_name(forward);
    const auto found = backward_.find(name_in(*name, "backward"));
    if (found == backward_.end()) return kNone;
    const Side& side = flow_.side();
    std::size_t at = 0;
    for (const std::uint32_t i : side.apis[found->second].items()) {
      const Item& item = side.items[i];
      if (item.state != State::input) continue;
      if (at++ == place) return item.is_tensor ? i : kNone;
    }
    return kNone;
  }

 private:
  const ContentFlow& flow_;
  std::unordered_map<std::string_view, std::uint32_t> backward_;
};

enum class Gradient : std::uint8_t { unknown, equal, differs };

/// The contents that several calls compute. Each of these calls has the gradient of its paths only.
std::vector<bool> made_several_times(const ContentFlow& flow) {
  std::vector<bool> found(flow.contents().size());
  for (std::uint32_t call = 0; call < flow.calls().size(); ++call) {
    const auto taken = flow.taken(call);
    for (const std::uint32_t given : flow.given(call)) {
      const bool handed_on = std::find(taken.begin(), taken.end(), given) != taken.end();
      if (flow.is_recorded(call) && flow.contents()[given].maker != call && !handed_on) found[given] = true;
    }
  }
  return found;
}

}  // namespace

GradientMeetings meet_gradients(const ContentFlow& target, const ContentFlow& golden,
                                const ParameterMap& parameters, const Meetings& meetings, double drift) {
  const ArrivingGradients ours(target);
  const ArrivingGradients theirs(golden);
  const auto& contents = target.contents();
  std::vector<Gradient> gradients(contents.size(), Gradient::unknown);
  const std::vector<bool> several = made_several_times(target);
  const std::vector<bool> golden_several = made_several_times(golden);
  GradientMeetings found;
  const bool half = is_half(std::max(target.coarsest(), golden.coarsest()));
  for (std::uint32_t i = 0; i < contents.size(); ++i) {
    if (meetings.golden_of[i] == kNone || several[i] || golden_several[meetings.golden_of[i]]) continue;
    // In half types, a content with near statistics may be another one.
    if (half && !are_taken_with_one_parameter(target, i, golden, meetings.golden_of[i], parameters)) continue;
    const std::uint32_t item = ours.of(i);
    const std::uint32_t partner = theirs.of(meetings.golden_of[i]);
    if (item == kNone || partner == kNone) continue;
    const Item& gradient = target.side().items[item];
    const Item& other = golden.side().items[partner];
    if (elements_of(target.side().text(gradient.shape)) != elements_of(golden.side().text(other.shape)))
      continue;
    const measuring::Measure measured = measuring::measure(target.side(), gradient, golden.side(), other);
    if (!measured.known || measured.blind) continue;
    const double equal = (half ? kTrainedRoundingHalf : kTrainedRounding) + drift;
    if (measured.e <= equal) {
      gradients[i] = Gradient::equal;
      ++found.equal;
    } else if (measured.e > kFew * equal) {
      gradients[i] = Gradient::differs;
      found.differs = i;
      found.golden_differs = meetings.golden_of[i];
      found.error = measured.e;
    }
  }
  if (found.differs == kNone) return found;
  // Follow the calls that take the content, up to contents whose gradient is known to be the same.
  std::vector<bool> reached(contents.size());
  reached[found.differs] = true;
  for (std::uint32_t call = 0; call < target.calls().size(); ++call) {
    const auto taken = target.taken(call);
    if (std::none_of(taken.begin(), taken.end(), [&](std::uint32_t each) { return reached[each]; })) continue;
    if (target.is_recorded(call)) found.calls.push_back(call);
    for (const std::uint32_t given : target.given(call)) {
      if (contents[given].maker == call && gradients[given] != Gradient::equal) reached[given] = true;
    }
  }
  return found;
}

}  // namespace msprobe::diagnosis
