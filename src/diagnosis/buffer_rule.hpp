// SPDX-License-Identifier: Apache-2.0
// Source: buffers of modules (tables of positions, masks, running statistics) that differ before they are
// used.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class BufferRule : WalkRule {
 public:
  /// Compares all of them, by module and name.
  explicit BufferRule(Walk& walk);

  /// Reports what differs where its module begins; called for each entry in order.
  void report(std::uint32_t target_api);
  /// Does the module have one that differs?
  bool differ_in(std::uint32_t module) const { return modules_.contains(module); }
  /// Is an input of this content a buffer that differs?
  bool is_different(std::uint64_t key) const { return different_.find(key) != ContentMap::kUnknown; }

 private:
  std::uint32_t begin_of(std::uint32_t module) const;
  Finding finding_of(std::uint32_t buffer, std::uint32_t golden_buffer, double e, double excess) const;

  std::multimap<std::uint32_t, Finding> findings_;  // by the entry at which they are reported
  ContentMap different_;
  std::set<std::uint32_t> modules_;
};

}  // namespace msprobe::diagnosis
