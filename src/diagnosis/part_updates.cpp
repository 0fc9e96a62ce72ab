// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/part_updates.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "dump/names.hpp"
#include "measuring/measures.hpp"
#include "pairing/updates.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Side;
using dump::State;

/// Elements of the first tensor that each call takes, by operation, in order of size.
using Sizes = std::map<std::string_view, std::vector<std::uint64_t>>;

Sizes sizes_taken(const Side& side, const dump::ConstructTable& construct) {
  Sizes sizes;
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    // Calls that clip gradients also take a list of their norms, which is shorter where parameters have no
    // gradient.
    if (construct.parent(side.text(side.apis[api].name)) != pairing::kOptimizer) continue;
    const dump::EntryName name = side.parsed_name(api);
    for (const std::uint32_t i : side.apis[api].items()) {
      if (side.items[i].state != State::input || !side.items[i].is_tensor) continue;
      sizes[name.base].push_back(measuring::elements_of(side.text(side.items[i].shape)));
      break;
    }
  }
  for (auto& [operation, taken] : sizes) std::sort(taken.begin(), taken.end());
  return sizes;
}

/// Has the one less in most, and more in none?
bool are_parts(const std::vector<std::uint64_t>& parts, const std::vector<std::uint64_t>& wholes) {
  std::size_t less = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] > wholes[i]) return false;
    less += parts[i] < wholes[i] ? 1 : 0;
  }
  return 2 * less > parts.size();
}

}  // namespace

std::optional<PartUpdates> part_updates(const Side& target, const dump::ConstructTable* construct,
                                        const Side& golden, const dump::ConstructTable* golden_construct) {
  if (construct == nullptr || golden_construct == nullptr) return std::nullopt;
  const Sizes ours = sizes_taken(target, *construct);
  const Sizes theirs = sizes_taken(golden, *golden_construct);
  std::size_t common = 0;
  std::size_t our_parts = 0;
  std::size_t their_parts = 0;
  for (const auto& [operation, taken] : ours) {
    const auto other = theirs.find(operation);
    if (other == theirs.end() || other->second.size() != taken.size()) continue;
    // Counts of steps are numbers on both sides.
    if (taken.back() <= 1 && other->second.back() <= 1) continue;
    ++common;
    our_parts += are_parts(taken, other->second) ? 1 : 0;
    their_parts += are_parts(other->second, taken) ? 1 : 0;
  }
  if (common > 0 && our_parts == common) return PartUpdates::target;
  if (common > 0 && their_parts == common) return PartUpdates::golden;
  return std::nullopt;
}

}  // namespace msprobe::diagnosis
