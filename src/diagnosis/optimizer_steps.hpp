// SPDX-License-Identifier: Apache-2.0
// Finds the steps of both sides' optimizers that update the same parameters.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "dump/training.hpp"

namespace msprobe::diagnosis {

using GroupsByParameter = std::map<std::string, const dump::OptimizerGroup*>;

/// The groups by the names of their parameters; empty if a name is not known.
GroupsByParameter groups_by_parameter(const dump::OptimizerSettings& optimizer);

/// Steps of optimizers that update the same parameters: one of each side, or several where one side has an
/// optimizer for each part of what the other updates in one step. A side has none of some steps.
struct SameSteps {
  std::vector<std::size_t> ours;
  std::vector<std::size_t> theirs;
};

/// Each step goes with the step of the other side that holds most of its parameters, each of them once, or
/// with one that holds all of them and already goes with steps for its other parameters; those that hold none
/// of each other's go together in their order. Two optimizers may step in another order.
std::vector<SameSteps> same_steps(const std::vector<dump::OptimizerSettings>& ours,
                                  const std::vector<dump::OptimizerSettings>& theirs);

/// Several steps as one, under the name of the first.
dump::OptimizerSettings joined_steps(const std::vector<dump::OptimizerSettings>& optimizers,
                                     const std::vector<std::size_t>& steps);

}  // namespace msprobe::diagnosis
