// SPDX-License-Identifier: Apache-2.0
// A recorded call as a request to a runner: its arguments are rebuilt, its tensors are bytes in a separate
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/calls/plan.hpp"
#include "precheck/calls/random_elements.hpp"
#include "precheck/calls/tensor_store.hpp"
#include "precheck/runner/shared_file.hpp"
#include "support/command.hpp"

namespace msprobe::precheck {

struct RequestOptions {
  Framework framework = Framework::pytorch;  // of the dump
  bool hf32 = false;                         // inputs of convolutions are rounded as an NPU does
  bool real_data_only = false;               // nothing is synthetic
  bool device_call = true;                   // else the reference alone
  bool reference_on_device = false;          // not on the CPU
  bool raise_reference = true;               // to wider types than were recorded
  std::int64_t timeout = 0;                  // seconds; 0: none
  std::optional<std::uint32_t> seed;         // of random data; without it each call has its own
};

/// Whether the backward is made, or why not.
struct BackwardPlan {
  bool wanted = false;
  std::string skip;  // why it is not made although there is a backward entry
};

/// A tensor among the arguments, and its place in the payload.
struct RequestTensor {
  bool gradient = false;  // an argument of backward
  std::size_t index = 0;  // among all values of its side
  tensor::DType dtype = tensor::DType::float32;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct CallRequest {
  std::string json;  // one line
  BackwardPlan backward;
  bool float8_input = false;
  std::optional<tensor::DType> cast;  // the type to which automatic casting cast inputs in float32
  bool synthetic = false;             // some tensor is random
  std::vector<RequestTensor> tensors;
  double input_scale = 0;  // the largest finite magnitude in the tensors that go in
};

/// Builds requests, one after the other. `tensors`: those that entries name; nothing: none were dumped.
class RequestBuilder {
 public:
  RequestBuilder(std::shared_ptr<const TensorStore> tensors, const RequestOptions& options)
      : tensors_(std::move(tensors)), options_(options) {}

  /// `payload` is emptied first. NotRebuilt, IoError, FormatError: the call cannot be made.
  CallRequest build(std::uint64_t id, const PlannedCall& call, const dump::Entry& forward,
                    const dump::Entry* backward, SharedFile& payload);

 private:
  std::shared_ptr<const TensorStore> tensors_;
  RequestOptions options_;
};

}  // namespace msprobe::precheck
