// SPDX-License-Identifier: Apache-2.0
// Finds out from its entry how an operation is called: in which types, and whether its result is random.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/calls/plan.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::precheck {

/// The types to which the inputs of the reference are raised. `floats`: those of float16, bfloat16 and
/// float32 that occur.
std::vector<std::pair<std::string, std::string>> raised_types(const std::set<tensor::DType>& floats);

/// The dtype of the first recorded output, if that is a floating-point one.
std::optional<tensor::DType> output_type(const dump::Entry& forward);

/// The type to which automatic casting cast the call's inputs; nothing if it did not.
std::optional<tensor::DType> autocast_type(const std::set<tensor::DType>& floats,
                                           const std::optional<tensor::DType>& output);

/// Whether the result is random because of a probability that is not known to be 0.
bool is_random(const PlannedCall& call, const dump::Entry& forward, dump::Entry::Index arguments,
               dump::Entry::Index keywords);

}  // namespace msprobe::precheck
