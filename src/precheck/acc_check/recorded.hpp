// SPDX-License-Identifier: Apache-2.0
// What an operation gave in the run that was recorded, in the place of what a device gives now.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/calls/tensor_store.hpp"
#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

/// The outputs point into `bytes`.
struct RecordedOutputs {
  std::vector<Output> elements;
  std::vector<std::vector<std::byte>> bytes;
};

/// Was some output dumped as a tensor, or is there none that could have been?
bool has_files(const dump::Entry& entry);

/// Of a member of an entry: `output`, or the gradients that came in, which are `input` of a backward.
/// `tensors`: nothing if none were dumped.
/// NotRebuilt, IoError, FormatError.
RecordedOutputs recorded_outputs(const dump::Entry& entry, const TensorStore* tensors,
                                 std::string_view member = "output");

/// Did the gradient of an operation in place leave it as it came in? At the border of a module, where it
/// works on a view, the Python tool records the gradient of the view in its place.
bool passes_gradient_through(const ApiName& api, const dump::Entry& forward, const dump::Entry& backward,
                             const TensorStore* tensors);

/// The recorded values in the form of the reference: one, or a list.
Output shaped_like(const Output& reference, std::vector<Output> elements);

/// Gradients of the reference and recorded ones, as two lists of the same length.
struct GradientPairs {
  Output reference;
  Output recorded;
  std::vector<std::size_t> places;  // of their elements, among all that were recorded
};

/// They pair by place where there are as many, else those that are there. NotRebuilt if there are not as
/// many.
GradientPairs pair_gradients(const Output& reference, std::vector<Output> recorded);

}  // namespace msprobe::precheck
