// SPDX-License-Identifier: Apache-2.0
// Outputs and gradients of a running training beside those of the reference, as rows of the table of
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
  Direction direction = Direction::forward;
  /// Of the elements of both lists, in their names; empty: as they stand.
  const std::vector<std::size_t>& places;
};

class OnlineTable {
 public:
  /// Rows are made of outputs that have none yet, or one with another verdict. References in wider types are
  /// rounded.
  void take(const CallOutputs& call, const Output& training, Output reference);

  /// With its end of line.
  const std::string& header() const { return header_; }
  /// The rows that were made since.
  std::string take_lines();

 private:
  pairing::Rules rules_ = pairing::default_rules();
  std::map<std::string, verdict::Verdict> verdicts_;  // of the last rows, by their names
  std::string header_;
  std::string lines_;
};

}  // namespace msprobe::precheck
