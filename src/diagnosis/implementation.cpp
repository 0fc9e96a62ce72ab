// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/implementation.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "dump/names.hpp"
#include "pairing/places.hpp"

namespace msprobe::diagnosis {

using dump::Item;
using dump::Side;
using dump::State;
using pairing::kNone;
using pairing::module_path;

Implementation::Implementation(const Side& of, const pairing::Joins* joins,
                               const std::shared_ptr<const dump::ConstructBeside>& beside)
    : side(of), construct_(beside ? &beside->table() : nullptr), flow(forward_flow(of, joins, construct_)) {}

std::string Implementation::module(std::uint32_t call) const {
  const std::string entry = flow.name(call);
  const bool own = !module_path(entry).empty();
  return std::string(module_path(own || construct_ == nullptr ? entry : construct_->parent(entry)));
}

std::vector<std::uint32_t> Implementation::made() const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_entry;
  for (std::uint32_t i = 0; i < flow.contents().size(); ++i) {
    if (flow.is_made(i)) by_entry.emplace_back(flow.calls()[flow.contents()[i].maker], i);
  }
  std::sort(by_entry.begin(), by_entry.end());
  std::vector<std::uint32_t> found;
  for (const auto& [entry, content] : by_entry) found.push_back(content);
  return found;
}

std::uint32_t Implementation::last_recorded() const {
  auto call = static_cast<std::uint32_t>(flow.calls().size());
  while (call > 0 && !flow.is_recorded(call - 1)) --call;
  return call == 0 ? kNone : call - 1;
}

std::string Implementation::name(std::uint32_t content) const {
  const Item& item = side.items[flow.contents()[content].item];
  return std::string(flow.is_made(content) ? side.text(side.apis[item.api].name) : side.name(item));
}

std::uint32_t Implementation::first_of(const std::vector<std::uint32_t>& calls, std::uint32_t content) const {
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

std::pair<std::uint64_t, double> Implementation::gradients() const {
  std::set<std::uint64_t> known;
  std::uint64_t elements = 0;
  double norm = 0;
  for (const Item& item : side.items) {
    const std::uint64_t key = item.state == State::parameters_grad ? measuring::content_key(side, item) : 0;
    if (key == 0 || !known.insert(key).second) continue;
    elements += measuring::elements_of(side.text(item.shape));
    norm = std::hypot(norm, measuring::number_of(side, item, dump::kNorm));
  }
  return {elements, norm};
}

std::string Implementation::operations(const std::vector<std::uint32_t>& calls) const {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> bases;
  for (const std::uint32_t call : calls) bases.emplace_back(side.parsed_name(flow.calls()[call]).base);
  return bases.empty() ? "nothing" : list_of(bases, kShown);
}

std::vector<std::string> Implementation::names(const std::vector<std::uint32_t>& calls) const {
  std::vector<std::string> found;
  for (const std::uint32_t call : calls) found.push_back(flow.name(call));
  return found;
}

double Implementation::coarsest() const {
  return std::max(measuring::kSingleRoundoff, flow.coarsest());
}

Allowance allowance_of(double u, double drift) {
  // In half types, single elements are off by their rounding, but norms are not.
  if (is_half(u)) return {kFew * u + drift, kAlike + drift};
  return {kFar * u + drift, kFar * u + drift};
}

}  // namespace msprobe::diagnosis
