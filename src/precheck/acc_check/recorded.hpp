// SPDX-License-Identifier: Apache-2.0
// The outputs of an operation in the recorded run. They replace the outputs of a device now.
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
  std::vector<CallOutput> elements;
  std::vector<std::vector<std::byte>> bytes;
};

/// Whether an output was dumped as a tensor, or no output could have been.
bool has_files(const dump::Entry& entry);

/// The recorded values of a member of an entry: `output`, or the gradients that came in, which are `input` of
/// a backward. `tensors`: null if no tensors were dumped.
/// NotRebuilt, IoError, FormatError.
RecordedOutputs recorded_outputs(const dump::Entry& entry, const TensorStore* tensors,
                                 std::string_view member = "output");

/// Whether the gradient of an in-place operation leaves it unchanged. At the border of a module, where the
/// operation works on a view, the Python tool records the gradient of the view in its place.
bool passes_gradient_through(const ApiName& api, const dump::Entry& forward, const dump::Entry& backward,
                             const TensorStore* tensors);

/// The recorded values in the form of the reference: one, or a list.
CallOutput shaped_like(const CallOutput& reference, std::vector<CallOutput> elements);

/// Gradients of the reference and recorded ones, as two lists of the same length.
struct GradientPairs {
  CallOutput reference;
  CallOutput recorded;
  std::vector<std::size_t> places;  // of their elements, among all that were recorded
};

/// Pairs gradients by their places if both sides have the same number, else by those that are present.
/// NotRebuilt if their numbers still differ.
GradientPairs pair_gradients(const CallOutput& reference, std::vector<CallOutput> recorded);

}  // namespace msprobe::precheck
