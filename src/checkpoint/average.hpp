// SPDX-License-Identifier: Apache-2.0
// Finds out whether the second checkpoint is an average of the first and a third one, as merged models and
// averages over a training are.
#pragma once

#include <string>
#include <unordered_map>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

class ThirdCheckpoint {
 public:
  explicit ThirdCheckpoint(const Checkpoint& checkpoint);

  /// True if the third checkpoint has a parameter with a name that occurs in `checkpoint`.
  bool knows(const Checkpoint& checkpoint) const;

  /// Returns "0.9 x the first + 0.1 x the third" if that gives every element of `second` up to the rounding
  /// of the types, and neither of the two alone is that near; else an empty text. The parameter of the third
  /// is found by the name of `first`. Throws FormatError or IoError if one cannot be read.
  std::string average(const Parameter& first, const Parameter& second) const;

 private:
  std::unordered_map<std::string, Parameter> parameters_;  // by names without the heads that programs add
};

}  // namespace msprobe::checkpoint
