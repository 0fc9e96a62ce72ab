// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/other_code.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/recorders.hpp"
#include "dump/names.hpp"
#include "dump/side.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "pairing/roles.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;
using pairing::kNone;

/// The paths of the modules that have recorded parameters or gradients of parameters.
std::set<std::string> parameter_paths(const Side& side) {
  std::set<std::string> found;
  std::uint32_t last = kNone;
  for (const Item& item : side.items) {
    if (item.state != State::parameters && item.state != State::parameters_grad) continue;
    if (std::exchange(last, item.api) == item.api) continue;
    found.insert(pairing::without_wrappers(pairing::module_path(side.text(side.apis[item.api].name))));
  }
  return found;
}

/// The operation that an entry calls in the forward; empty for other entries.
std::string_view call_of(const Side& side, std::uint32_t api) {
  const dump::EntryName name = side.parsed_name(api);
  return !name.is_module && name.direction == Direction::forward ? name.base : std::string_view();
}

/// Whether many of the paired calls take parameters of other sizes, as joined projections do.
bool take_other_parameters(const measuring::MeasuredRank& rank) {
  const auto elements_taken = [](const Side& side, std::uint32_t api) {
    const dump::EntryName name = side.parsed_name(api);
    std::uint64_t elements = 0;
    if (!pairing::takes_parameters(name.operation())) return elements;
    for (const std::uint32_t i : side.apis[api].items()) {
      const Item& item = side.items[i];
      if (item.state != State::input || !item.is_tensor) continue;
      const auto position = pairing::position_of(side, item);
      if (position && pairing::is_parameter_position(name.operation(), *position))
        elements += measuring::elements_of(side.text(item.shape));
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
  return other >= kFewestCases && static_cast<double>(other) >= kHalf * static_cast<double>(calls);
}

/// Whether the calls of one side are the first calls of the other, as in a run that ended in the middle of a
/// step. `partners`: of the entries of `part`; `back`: of those of `whole`.
bool is_beginning(const Side& part, const std::vector<std::uint32_t>& partners, const Side& whole,
                  const std::vector<std::uint32_t>& back) {
  std::uint32_t end = 0;
  for (std::uint32_t api = 0; api < part.apis.size(); ++api) {
    const std::string_view call = call_of(part, api);
    if (call.empty()) continue;
    if (partners[api] == kNone || call_of(whole, partners[api]) != call) return false;
    end = std::max(end, partners[api] + 1);
  }
  for (std::uint32_t api = 0; api < end; ++api)
    if (back[api] == kNone && !call_of(whole, api).empty()) return false;
  return end > 0;
}

}  // namespace

bool are_two_code_bases(const measuring::MeasuredRank& rank) {
  const std::set<std::string> ours = parameter_paths(rank.target);
  const std::set<std::string> theirs = parameter_paths(rank.golden);
  const std::size_t fewest = std::min(ours.size(), theirs.size());
  const std::size_t most_modules = std::max(ours.size(), theirs.size());
  if (pairing::of_other_operations(rank.target, rank.golden)) return false;
  const pairing::Alignment& alignment = *rank.alignment;
  if (is_beginning(rank.target, alignment.golden_of, rank.golden, alignment.target_of) ||
      is_beginning(rank.golden, alignment.target_of, rank.target, alignment.golden_of))
    return false;
  if (records_part_of(rank.target, rank.golden) || records_part_of(rank.golden, rank.target)) return false;
  const auto common =
      std::count_if(ours.begin(), ours.end(), [&](const std::string& path) { return theirs.contains(path); });
  // Modules also count as different where one side has no modules with parameters.
  const bool by_modules = fewest >= kFewestCases || (fewest == 0 && most_modules >= kFewestCases);
  std::size_t calls = 0;
  std::size_t golden_calls = 0;
  std::size_t same = 0;
  // Calls that a recording was not asked for are not missing.
  const auto counts = [](const Side& side, std::uint32_t api, const Side& other,
                         const std::shared_ptr<const dump::ConstructBeside>& construct) {
    return !call_of(side, api).empty() && was_asked_for(other.header, side.text(side.apis[api].name),
                                                        construct ? &construct->table() : nullptr);
  };
  for (std::uint32_t api = 0; api < rank.target.apis.size(); ++api) {
    if (!counts(rank.target, api, rank.golden, rank.target_construct)) continue;
    const std::string_view call = call_of(rank.target, api);
    ++calls;
    const std::uint32_t partner = rank.alignment->golden_of[api];
    if (partner != kNone && call_of(rank.golden, partner) == call) ++same;
  }
  for (std::uint32_t api = 0; api < rank.golden.apis.size(); ++api)
    golden_calls += counts(rank.golden, api, rank.target, rank.golden_construct) ? 1 : 0;
  const std::size_t fewest_calls = std::min(calls, golden_calls);
  const bool common_modules =
      fewest >= kFewestCases && static_cast<double>(common) >= kHalf * static_cast<double>(fewest);
  const double most = by_modules && !common_modules ? kNearlyAll : kHalf;
  if (fewest_calls == 0) return by_modules && !common_modules;
  if (!rank.target_joins && !rank.golden_joins && take_other_parameters(rank)) return true;
  // A side that makes many calls for each call of the other is written differently, for example a loop for a
  // fused kernel.
  if (fewest_calls > 0 &&
      static_cast<double>(std::max(calls, golden_calls)) >= kMany * static_cast<double>(fewest_calls))
    return true;
  return ((by_modules && !common_modules) || static_cast<double>(fewest_calls) >= kMany) &&
         static_cast<double>(same) < most * static_cast<double>(fewest_calls);
}

bool are_two_layouts(const measuring::MeasuredRank& rank) {
  const auto ranks = [](const std::shared_ptr<pairing::Joins>& joins) {
    return joins ? joins->ranks.size() : 1;
  };
  return ranks(rank.target_joins) != ranks(rank.golden_joins);
}

}  // namespace msprobe::diagnosis
