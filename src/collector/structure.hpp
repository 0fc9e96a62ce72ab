// SPDX-License-Identifier: Apache-2.0
// The calls that are open now, by thread, and the parents of calls in construct.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collector/call.hpp"
#include "collector/growing_file.hpp"

namespace msprobe::collector {

/// A forward call that was entered and has not been left.
struct OpenCall {
  CollectedCall call;
  std::uint64_t sequence = 0;  // of all calls of the step
  std::uint64_t entry = 0;
  std::uint32_t api_depth = 0;   // of its thread at the time of entry
  bool recorded = false;         // its input passed the filter
  bool output_checked = false;   // the filter was asked about its output
  bool output_recorded = false;  // and accepted it
};

struct Thread {
  std::vector<OpenCall> calls;
  std::uint32_t api_depth = 0;  // nesting of APIs
  std::optional<std::uint32_t> pseudo_parent;
};

class Structure {
 public:
  /// The state of the calling thread.
  Thread& thread();
  /// The open call, in this thread or else in any thread; null if it is not open. `owner` receives its
  /// thread.
  OpenCall* find(const CollectedCall& call, Thread*& owner);
  /// The parent of a forward call that begins now.
  Parent parent_of(const CollectedCall& call, const Thread& thread) const;

  /// Adds a line to construct.json.
  void add_node(GrowingFile& file, const CollectedCall& call, Parent parent);
  /// The text after the lines: the number of micro steps, if there are any.
  std::string provisional(const GrowingFile& file) const;
  bool changed() const { return changed_; }
  void set_written() { changed_ = false; }

  void set_micro_step(std::uint32_t micro_step);
  std::uint64_t next_sequence() { return ++sequence_; }

 private:
  void append_value(std::string& out, const CollectedCall& call, Parent parent) const;

  std::unordered_map<std::uint64_t, Thread> threads_;
  std::unordered_set<std::string>
      unusual_;  // nodes that may come twice: backward calls, names without a number
  std::optional<std::uint32_t> micro_step_;
  std::uint32_t highest_micro_step_ = 0;
  std::uint64_t sequence_ = 0;
  bool changed_ = false;
};

}  // namespace msprobe::collector
