// SPDX-License-Identifier: Apache-2.0
// Compares outputs and gradients of a running training with those of the reference, as rows of the table of
// `compare`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pairing/rules.hpp"
#include "precheck/judgement/output.hpp"
#include "verdict/finding.hpp"

namespace msprobe::precheck {

/// One direction of a call.
struct CallOutputs {
  const std::string& operation;  // "Torch.matmul.0"
  std::uint64_t step = 0;
  CallDirection direction = CallDirection::forward;
  /// The numbers in the names of the elements of both lists; empty: their order.
  const std::vector<std::size_t>& places;
};

class OnlineTable {
 public:
  /// Makes rows for outputs that have no row yet, or a row with another verdict. Rounds references in wider
  /// types.
  void take(const CallOutputs& call, const CallOutput& training, CallOutput reference);

  /// With its end of line.
  const std::string& header() const { return header_; }
  /// The rows that were made since the last call.
  std::string take_lines();

 private:
  pairing::Rules rules_ = pairing::default_rules();
  std::map<std::string, verdict::Verdict> verdicts_;  // of the last rows, by their names
  std::string header_;
  std::string lines_;
};

}  // namespace msprobe::precheck
