// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/flow.hpp"

#include <algorithm>
#include <cmath>

#include "dump/names.hpp"
#include "measuring/measures.hpp"
#include "support/parallel.hpp"

namespace msprobe::diagnosis {
ContentKeys::ContentKeys(const dump::Side& side, bool at_once) : side_(&side) {
  if (!at_once) return;
  keys_.resize(side.items.size());
  parallel_blocks(keys_.size(),
                  [&](std::size_t i) { keys_[i] = measuring::content_key(side, side.items[i]); });
}

std::size_t ContentMap::slot_of(std::uint64_t key) const {
  std::size_t slot = key & (slots_.size() - 1);
  while (slots_[slot].value != kUnknown && !slots_[slot].holds(key)) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void ContentMap::grow() {
  constexpr std::size_t kFewest = 64;
  std::vector<ContentSlot> old(slots_.empty() ? kFewest : 2 * slots_.size());
  old.swap(slots_);
  for (const ContentSlot& slot : old) {
    if (slot.value != kUnknown) slots_[slot_of(std::uint64_t{slot.high} << 32 | slot.low)] = slot;
  }
}

void ContentMap::put(std::uint64_t key, std::uint32_t value) {
  if (key == 0) return;
  if (slots_.size() * 2 < (count_ + 1) * 3) grow();
  ContentSlot& slot = slots_[slot_of(key)];
  if (slot.value == kUnknown) ++count_;
  slot = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), value};
}

void ContentMap::put_outputs(const ContentKeys& keys, std::uint32_t api, bool only_new) {
  const dump::Side& side = keys.side();
  for (const std::uint32_t i : side.apis[api].items()) {
    if (side.items[i].state != dump::State::output) continue;
    const std::uint64_t key = keys.of(i);
    // An operation in the module has already given a tensor that the module hands on.
    if (only_new && find(key) != kUnknown) continue;
    put(key, i);
  }
}

std::uint32_t ContentMap::find(std::uint64_t key) const {
  return key == 0 || slots_.empty() ? kUnknown : slots_[slot_of(key)].value;
}

std::uint32_t trained_maker(const ContentKeys& keys, std::uint32_t item, std::uint32_t from) {
  constexpr std::uint32_t kMostBefore = 4096;
  const dump::Side& side = keys.side();
  const auto is_trained = [&](std::uint32_t i) {
    return side.items[i].requires_grad == dump::RequiresGrad::yes;
  };
  if (from == ContentMap::kUnknown || !is_trained(item) || is_trained(from)) return from;
  const std::uint32_t last = side.items[from].api;
  for (std::uint32_t api = last; api-- > last - std::min(last, kMostBefore);) {
    for (const std::uint32_t i : side.apis[api].items()) {
      if (side.items[i].state == dump::State::output && is_trained(i) && keys.of(i) == keys.of(item))
        return i;
    }
  }
  return from;
}

bool gives_alike(const dump::Side& side, std::uint32_t api, const dump::Item& item) {
  // The extremes of truth values say nothing.
  const double value = measuring::number_of(side, item, dump::kMax);
  if (measuring::unit_roundoff(side.text(item.dtype)) == 0 &&
      !std::isfinite(measuring::number_of(side, item, dump::kNorm)))
    return false;
  if (value != measuring::number_of(side, item, dump::kMin)) return false;
  for (const std::uint32_t i : side.apis[api].items()) {
    const dump::Item& other = side.items[i];
    if (other.state == dump::State::output && other.is_tensor && other.dtype == item.dtype &&
        measuring::elements_of(side.text(other.shape)) == measuring::elements_of(side.text(item.shape)) &&
        measuring::number_of(side, other, dump::kMax) == value &&
        measuring::number_of(side, other, dump::kMin) == value)
      return true;
  }
  return false;
}

std::unordered_set<std::uint64_t> contents_in(const ContentKeys& keys, std::uint32_t api, dump::State state) {
  std::unordered_set<std::uint64_t> contents;
  for (const std::uint32_t i : keys.side().apis[api].items()) {
    if (keys.side().items[i].state == state) contents.insert(keys.of(i));
  }
  contents.erase(0);
  return contents;
}

std::uint32_t item_with(const ContentKeys& keys, std::uint32_t api, dump::State state,
                        const std::unordered_set<std::uint64_t>& contents) {
  for (const std::uint32_t i : keys.side().apis[api].items()) {
    if (keys.side().items[i].state == state && contents.contains(keys.of(i))) return i;
  }
  return ContentMap::kUnknown;
}

std::uint32_t first_backward(const dump::Side& side) {
  std::uint32_t api = 0;
  while (api < side.apis.size() && side.parsed_name(api).direction != dump::Direction::backward) ++api;
  return api;
}

std::uint32_t behind_backward(const dump::Side& side) {
  for (auto api = static_cast<std::uint32_t>(side.apis.size()); api > 0; --api) {
    const dump::EntryName name = side.parsed_name(api - 1);
    if (name.direction == dump::Direction::backward) return api;
  }
  return static_cast<std::uint32_t>(side.apis.size());
}

std::vector<FlowEdge> flow_edges(const ContentKeys& keys, const std::vector<bool>& compound) {
  const dump::Side& side = keys.side();
  ContentMap flow;
  std::vector<FlowEdge> edges;
  std::vector<std::uint32_t> told_to(side.apis.size(), UINT32_MAX);  // by producer: its last consumer
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    for (const std::uint32_t i : side.apis[api].items()) {
      if (side.items[i].state != dump::State::input) continue;
      const std::uint32_t from = flow.find(keys.of(i));
      if (from == ContentMap::kUnknown) continue;
      const std::uint32_t producer = side.items[from].api;
      if (producer == api || told_to[producer] == api) continue;
      told_to[producer] = api;
      edges.push_back({api, producer});
    }
    flow.put_outputs(keys, api, compound[api]);
  }
  return edges;
}

}  // namespace msprobe::diagnosis
