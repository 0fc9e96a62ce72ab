// SPDX-License-Identifier: Apache-2.0
// How single operations are treated when they are called again (data/precheck/calls.yaml).
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

struct OperatorPolicy {
  using Names = std::set<std::string, std::less<>>;
  Names types;            // of PyTorch
  Names mindspore_types;  // of MindSpore
  Names probability_names;
};

/// The built-in one.
const OperatorPolicy& operator_policy();

/// Whether the results of an operation are random, whatever its arguments are.
bool is_always_random(const ApiName& api);
/// Where the argument stands that makes them random if it is not 0.
std::optional<std::size_t> probability_position(const ApiName& api);

/// Names that white and black lists may hold.
const OperatorPolicy::Names& listable_names();

}  // namespace msprobe::precheck
