// SPDX-License-Identifier: Apache-2.0
// The calls of a running training that are not right, saved as a dump: `op_generate` makes scripts of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "precheck/acc_check/online_tensors.hpp"

namespace msprobe::precheck {

/// The saved data of one call.
struct SavedCall {
  std::uint64_t order = 0;          // calls that were made earlier have lower ones
  std::string name;                 // "Torch.matmul.0"
  std::string forward;              // its entries, as JSON
  std::string backward;             // empty: it has none
  std::vector<std::string> frames;  // of the calling code, innermost first
};

class OnlineCases {
 public:
  explicit OnlineCases(std::string folder) : folder_(std::move(folder)) {}

  /// Adds a call to the dump of its step and rank, `step5/rank0`; the dump is complete after each call. Steps
  /// come one after the other. IoError.
  void save(const std::string& place, const SavedCall& call, const ReceivedTensors& tensors);
  /// The dump.json of the first step that has a call; empty if no step has one.
  const std::string& first_dump() const { return first_dump_; }

 private:
  std::string folder_;
  std::string first_dump_;
  std::string place_;
  std::vector<SavedCall> calls_;  // of that place
  std::uint64_t saved_ = 0;       // bytes of tensors
};

}  // namespace msprobe::precheck
