// SPDX-License-Identifier: Apache-2.0
// Who put a tensor out, found by what is in it: views and reshapes, which nobody records, keep count, Max,
// Min and Norm (docs/how-it-decides.md, "What is compared with what").
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/imports.hpp"
#include "dump/side.hpp"
#include "measuring/content_key.hpp"

namespace msprobe::diagnosis {

/// The keys of a side's items: of all at once, by several threads, or of each when it is asked for.
class ContentKeys {
 public:
  ContentKeys(const dump::Side& side, bool at_once);
  std::uint64_t of(std::uint32_t item) const {
    return keys_.empty() ? content_key(*side_, side_->items[item]) : keys_[item];
  }
  const dump::Side& side() const { return *side_; }

 private:
  const dump::Side* side_;
  std::vector<std::uint64_t> keys_;
};

/// Numbers by keys, the last one that was put; 24 bytes a key at most.
class ContentMap {
 public:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;

  void put(std::uint64_t key, std::uint32_t value);
  /// The items that an entry put out; `only_new`: but for those that are known.
  void put_outputs(const ContentKeys& keys, std::uint32_t api, bool only_new);
  std::uint32_t find(std::uint64_t key) const;
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::uint32_t value = kUnknown;
    bool holds(std::uint64_t key) const {
      return low == static_cast<std::uint32_t>(key) && high == static_cast<std::uint32_t>(key >> 32);
    }
  };
  std::size_t slot_of(std::uint64_t key) const;
  void grow();

  std::vector<Slot> slots_;  // as many as a power of two
  std::size_t count_ = 0;
};

/// The first entry that no backward follows; the number of entries if there is no backward.
std::uint32_t behind_backward(const dump::Side& side);

/// An entry that takes what another one put out.
struct FlowEdge {
  std::uint32_t consumer = 0;  // entries by number
  std::uint32_t producer = 0;
  bool operator==(const FlowEdge&) const = default;
};

/// By consumer, in the order of its inputs, each pair once. `compound`: modules that other entries lie in,
/// which only hand on what is put out within.
std::vector<FlowEdge> flow_edges(const dump::Side& side, const std::vector<bool>& compound);

}  // namespace msprobe::diagnosis
