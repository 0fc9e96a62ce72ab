// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/enclosing_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Direction;
using dump::Side;
using dump::State;
using pairing::kNone;

bool has_operations(const Side& side) {
  return std::any_of(side.apis.begin(), side.apis.end(), [&](const dump::Api& api) {
    const dump::EntryName parsed = side.parsed_name(api);
    return !parsed.is_module && parsed.direction != Direction::debug;
  });
}

}  // namespace

EnclosingCode::EnclosingCode(Walk& walk)
    : WalkRule(walk),
      modules_only_(walk.construct != nullptr && !has_operations(target_) && !has_operations(golden_)) {}

std::string_view EnclosingCode::before(std::uint32_t target_api, std::string_view around) const {
  for (std::uint32_t api = target_api; api-- > 0;) {
    const std::string_view name = walk_.target_name(api);
    const dump::EntryName parsed = walk_.target.parsed_name(api);
    if (parsed.direction == Direction::forward && walk_.construct->parent(name) == around) return name;
  }
  return {};
}

void EnclosingCode::name(Finding& finding, const EntryPair& entry) const {
  const bool given = finding.kind == Kind::unrecorded || finding.kind == Kind::feed;
  const bool gradient = finding.kind == Kind::gradient;
  if (!modules_only_ || !finding.is_evidence() || !(given || gradient)) return;
  std::uint32_t child = gradient ? errors_.forward_of(entry.target) : entry.target;
  if (child == kNone) return;
  // A module makes neither its inputs nor the tensors that it passes on unchanged: the code around it does.
  std::uint32_t module = kNone;
  std::string_view around;
  for (const std::string_view next : walk_.construct->around(walk_.target_name(child))) {
    module = errors_.entry_named(next);
    if (module == kNone) return;
    around = next;
    // An output of the child is also one of the module, or the module takes the tensor.
    std::unordered_set<std::uint64_t> handed;
    if (gradient)
      handed = contents_in(walk_.target_keys, child, State::output);
    else if (finding.item != kNone)
      handed.insert(walk_.target_keys.of(finding.item));
    handed.erase(0);
    const bool passes =
        has_one_of(walk_.target_keys, module, gradient ? State::output : State::input, handed);
    if (!passes) break;
    child = std::exchange(module, kNone);
    around = {};
  }
  const std::string_view to = walk_.target_name(child);
  const std::string_view from = given ? before(child, around) : std::string_view();
  const std::string stretch = gradient       ? fmt::format("after {}", to)
                              : from.empty() ? fmt::format("before {}", to)
                                             : fmt::format("between {} and {}", from, to);
  // The text names the owner of the code first, so that this phrase is no longer needed.
  if (const std::size_t at = finding.text.find(kFromUnrecorded); at != std::string::npos)
    finding.text.erase(at, kFromUnrecorded.size());
  finding.text =
      fmt::format("{} own code {}: {}", module == kNone ? "the model's" : "its", stretch, finding.text);
  finding.next = "record again at level mix: it shows the operations there";
  if (module == kNone && gradient) return;
  const std::uint32_t named = module == kNone ? child : module;
  finding.entry = walk_.target_name(named);
  finding.module = pairing::module_path(finding.entry);
  if (alignment_.has_golden(named)) finding.golden_entry = walk_.golden_name(alignment_.golden_of[named]);
  if (module != kNone)
    finding.next = fmt::format("record {} again at level mix: it shows the operations there", finding.module);
}

}  // namespace msprobe::diagnosis
