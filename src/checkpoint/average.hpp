// SPDX-License-Identifier: Apache-2.0
// Is the second checkpoint an average of the first and a third one, as of merged models or of weights that
// were averaged over a training?
#pragma once

#include <string>
#include <unordered_map>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

class ThirdCheckpoint {
 public:
  explicit ThirdCheckpoint(const Checkpoint& checkpoint);

  /// Has it a parameter of that checkpoint, by its name?
  bool knows(const Checkpoint& checkpoint) const;

  /// "0.9 x the first + 0.1 x the third", where that gives every element of `second` up to the roundings of
  /// their types, and neither of them alone is that near; else empty. The one of the third has the name of
  /// `first`. FormatError or IoError if one cannot be read.
  std::string average(const Parameter& first, const Parameter& second) const;

 private:
  std::unordered_map<std::string, Parameter> parameters_;  // by names without what programs put before them
};

}  // namespace msprobe::checkpoint
