// SPDX-License-Identifier: Apache-2.0
// The producer of a tensor, found by the content: views and reshapes, which no recorder writes, keep the
// count, Max, Min and Norm (docs/how-it-decides.md, "What is compared with what").
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "dump/side.hpp"
#include "measuring/content_key.hpp"

namespace msprobe::diagnosis {

/// The content keys of a side's items, computed for all items at once by several threads, or for each item
/// when it is asked for.
class ContentKeys {
 public:
  ContentKeys(const dump::Side& side, bool at_once);
  std::uint64_t of(std::uint32_t item) const {
    return keys_.empty() ? measuring::content_key(*side_, side_->items[item]) : keys_[item];
  }
  const dump::Side& side() const { return *side_; }

 private:
  const dump::Side* side_;
  std::vector<std::uint64_t> keys_;
};

/// A map from keys to numbers. A later number replaces an earlier one. It takes at most 24 bytes a key.
class ContentMap {
 public:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;

  void put(std::uint64_t key, std::uint32_t value);
  /// Adds the outputs of an entry; with `only_new`, it leaves out contents that the map already has.
  void put_outputs(const ContentKeys& keys, std::uint32_t api, bool only_new);
  std::uint32_t find(std::uint64_t key) const;
  std::size_t size() const { return count_; }

 private:
  struct ContentSlot {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::uint32_t value = kUnknown;
    bool holds(std::uint64_t key) const {
      return low == static_cast<std::uint32_t>(key) && high == static_cast<std::uint32_t>(key >> 32);
    }
  };
  std::size_t slot_of(std::uint64_t key) const;
  void grow();

  std::vector<ContentSlot> slots_;  // as many as a power of two
  std::size_t count_ = 0;
};

/// The output that an item is: `from`, the last one with its content, or an earlier one that is trained as
/// the item is, where `from` is not. A copy of a model gives the same as the model until the first update.
std::uint32_t trained_maker(const ContentKeys& keys, std::uint32_t item, std::uint32_t from);

/// Whether an item of one value, which has no key because many entries give the same, is an output of the
/// entry.
bool gives_alike(const dump::Side& side, std::uint32_t api, const dump::Item& item);

/// The contents of an entry's items in a state.
std::unordered_set<std::uint64_t> contents_in(const ContentKeys& keys, std::uint32_t api, dump::State state);

/// The first item of an entry in a state that has one of these contents; kUnknown: none has.
std::uint32_t item_with(const ContentKeys& keys, std::uint32_t api, dump::State state,
                        const std::unordered_set<std::uint64_t>& contents);

/// Whether an entry has an item in a state with one of these contents.
inline bool has_one_of(const ContentKeys& keys, std::uint32_t api, dump::State state,
                       const std::unordered_set<std::uint64_t>& contents) {
  return item_with(keys, api, state, contents) != ContentMap::kUnknown;
}

/// The first backward; the number of entries if the side has none.
std::uint32_t first_backward(const dump::Side& side);

/// The first entry after the last backward; the number of entries if the side has no backward.
std::uint32_t behind_backward(const dump::Side& side);

/// An entry takes an output of another entry.
struct FlowEdge {
  std::uint32_t consumer = 0;  // entries by number
  std::uint32_t producer = 0;
  bool operator==(const FlowEdge&) const = default;
};

/// The edges by consumer, in the order of its inputs, each pair once. `compound`: modules that contain other
/// entries and only hand on their outputs.
std::vector<FlowEdge> flow_edges(const ContentKeys& keys, const std::vector<bool>& compound);

}  // namespace msprobe::diagnosis
