// SPDX-License-Identifier: Apache-2.0
// Source: buffers of modules (tables of positions, masks, running statistics) that differ before they are
// used.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/running_statistics.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// A buffer that differs is evidence once its effect shows: an entry takes it, or something in its module is
/// wrong that nothing else explains. Until then it is a hint.
class BufferRule : WalkRule {
 public:
  /// Compares all buffers of both sides, by module and name. Statistics that a call left are judged where the
  /// next call takes them.
  BufferRule(Walk& walk, const RunningStatistics& running);

  /// If an input of the entry has the content of a buffer that differs, reports the buffer and returns true.
  bool takes(EntryPair& entry, std::uint64_t content);
  /// Attributes the evidence of an entry to a buffer of its module that differs.
  void explain(EntryPair& entry);
  /// Reports the buffers whose effect was not seen as hints.
  void finish();

 private:
  struct Different {
    Finding finding;
    std::uint32_t module = 0;
    bool reported = false;
  };
  bool is_within(std::uint32_t api, std::uint32_t module) const;
  std::uint32_t begin_of(std::uint32_t module) const;
  Finding finding_of(std::uint32_t buffer, std::uint32_t golden_buffer, double e, double excess) const;
  void report(EntryPair& entry, Different& buffer);

  std::vector<Different> different_;
  ContentMap contents_;  // of these
};

}  // namespace msprobe::diagnosis
