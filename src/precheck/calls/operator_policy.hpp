// SPDX-License-Identifier: Apache-2.0
// How single operations are treated when they are called again (data/precheck/calls.yaml).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace msprobe::precheck {

struct OperatorPolicy {
  using Names = std::set<std::string, std::less<>>;
  Names never_called;
  Names mindspore_called;  // of these, in dumps of MindSpore
  Names types;             // of PyTorch
  Names mindspore_types;   // of MindSpore
  Names first_output_alone;
  Names rounded_to_hf32;
  Names reference_not_raised;
  Names random;
  std::map<std::string, std::size_t, std::less<>> random_by_probability;
  std::vector<std::string> probability_names;
  Names uninitialized;
};

/// The built-in one.
const OperatorPolicy& operator_policy();

/// Names that white and black lists may hold.
const OperatorPolicy::Names& listable_names();

}  // namespace msprobe::precheck
