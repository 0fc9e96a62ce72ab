// SPDX-License-Identifier: Apache-2.0
// What an operation gave in the run that was recorded, in the place of what a device gives now.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

/// The outputs point into `bytes`.
struct RecordedOutputs {
  std::vector<Output> elements;
  std::vector<std::vector<std::byte>> bytes;
};

/// Of the member `output` of an entry. NotRebuilt, IoError, FormatError.
RecordedOutputs recorded_outputs(const dump::Entry& entry, const std::string& tensors);

/// The recorded values in the form of the reference: one, or a list.
Output shaped_like(const Output& reference, std::vector<Output> elements);

/// Gradients pair by place where there are as many, else those that are there. NotRebuilt if that is ambiguous.
void pair_gradients(Output& reference, std::vector<Output> recorded, Output& device);

}  // namespace msprobe::precheck
